"""Programs for a range of sizes, and what their files state for one of them."""

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from arenite.pipeline.targets.compiling import lower, rules
from arenite.planner import Program
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.rewrites import derive
from arenite.planner.sizes import Dimension
from arenite.runtime.program import Assembly, assemble
from arenite.runtime.rewrites import fuse_sums
from arenite.strategies import find
from support.tiny_onnx import parse, save, with_random_weights


def of_text(text: str, sizes: Mapping[str, int], opset: int = 17) -> Program:
    """Return the program of a graph in which `$n` stands for a size."""
    for name, value in sizes.items():
        text = text.replace(f"${name}", str(value))
    return _read(text, opset, {})


def ranged(text: str, *dimensions: Dimension, opset: int = 17) -> Program:
    """Return the program of a graph in which `$n` stands for a size, for a range of it."""
    for each in dimensions:
        text = text.replace(f"${each.name}", each.name)
    return _read(text, opset, {each.name: each for each in dimensions})


def _read(text: str, opset: int, dims: Mapping[str, Dimension]) -> Program:
    model = with_random_weights(parse(text, opset=opset))
    with tempfile.TemporaryDirectory() as folder:
        return read_onnx(save(Path(folder), model), dims=dims, weights=True)


def assembled(model: Program) -> Assembly:
    """Return the file of a model, planned."""
    found = derive(fuse_sums(lower(model)), rules(), None)
    plan = find("best")(found.problem)
    return assemble(found.program, found.problem, plan, digest="0" * 64, producer="test")


def root_at(root: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return a root table with all its expressions at one size, as a reader of the file does."""
    found: dict[str, Any] = copy.deepcopy(dict(root))
    names = [each["name"] for each in found.pop("dimensions")]
    values: list[int] = []
    for each in found.pop("expressions"):
        values.append(_value(each, values, [sizes[name] for name in names]))
    for each in found.pop("axes"):
        found["tensors"][each["tensor"]]["shape"][each["axis"]] = values[each["expression"]]
    for each in found.pop("numbers"):
        _set(found["steps"][each["step"]], each["number"], values[each["expression"]])
    for step in found["steps"]:
        if step["kernel_type"] == "Resize2D":
            _cut_tables(found, step)
    return found


def _value(node: Mapping[str, Any], values: Sequence[int], sizes: Sequence[int]) -> int:
    operation, a, b = str(node["operation"]), int(node["a"]), int(node["b"])
    if operation == "constant":
        return a
    if operation == "dimension":
        return sizes[a]
    assert max(a, b) < len(values), "an expression may only name those before it"
    one, other = values[a], values[b]
    compute: dict[str, Callable[[int, int], int]] = {
        "add": int.__add__, "multiply": int.__mul__, "divide": int.__floordiv__,
        "maximum": max, "minimum": min,
    }  # fmt: skip
    return compute[operation](one, other)


def _set(step: dict[str, Any], number: int, value: int) -> None:
    kernel = step["kernel"]
    if step["kernel_type"] == "Conv2D" and number >= 4:
        kernel[("tile", "tuned_tile")[number - 4]] = value
        return
    if step["kernel_type"] != "Copy":
        place = kernel["padding"] if number < 4 else kernel["window"]
        place[number % 4] = value
        return
    for move in kernel["moves"]:
        for field in ("shape", "input_start", "input_strides", "output_start", "output_strides"):
            is_list = isinstance(move[field], list)
            length = len(move[field]) if is_list else 1
            if number < length:
                if is_list:
                    move[field][number] = value
                else:
                    move[field] = value
                return
            number -= length
    raise AssertionError("the step has no such number")


def _cut_tables(root: Mapping[str, Any], step: dict[str, Any]) -> None:
    source, result = (root["tensors"][step[place][0]]["shape"] for place in ("inputs", "outputs"))
    kernel = step["kernel"]
    for axis, name in ((1, "row"), (2, "column")):
        for table in ("low", "high"):
            cut = kernel[f"{name}_{table}"][: result[axis]]
            kernel[f"{name}_{table}"] = [min(each, source[axis] - 1) for each in cut]
        kernel[f"{name}_weight"] = kernel[f"{name}_weight"][: result[axis]]
        low, high = kernel[f"{name}_low"], kernel[f"{name}_high"]
        for place in range(len(high)):
            if low[place] == high[place]:
                kernel[f"{name}_weight"][place] = 0.0  # it blends one element with itself
