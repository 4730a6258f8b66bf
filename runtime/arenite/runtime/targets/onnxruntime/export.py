"""ONNX Runtime's own optimised graph, its nodes in an order of ours.

Stock sessions choose the order themselves. One that neither optimises nor sorts
(`ordered_options`) keeps the file's; so the file must hold what the optimiser made.
"""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from arenite.planner import AliasKind, FindOrder, Order, Program, TensorKind, read
from arenite.planner.errors import UnsupportedModelError, about_file, named_instead, needing
from arenite.planner.files import read_model
from arenite.planner.programs import Names
from arenite.runtime.targets.onnxruntime.recording import (
    ALIGNMENT,
    StockMemory,
    drawn_feeds,
    stock_memory,
)
from arenite.runtime.targets.onnxruntime.settled import drop_unfed_inputs
from arenite.runtime.targets.onnxruntime.stock import (
    missing_files_named,
    ordered_options,
    stock_options,
    stock_session,
)

_HURRIED: Final = ("Shape", "Size")
"""Operators that ONNX Runtime runs as early as possible in any order; their results are small."""

_NO_DIMS: Final[Mapping[str, int]] = {}
_NO_SHAPES: Final[Mapping[str, tuple[int, ...]]] = {}
_NO_VALUES: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True)
class OnnxruntimeExport:
    """A model in the better of two orders.

    Attributes:
        model: Model for a stock session with `ordered_options`; unchanged if stock stays.
        order: Our order, with its computed peak.
        stock: Memory that the model takes as it is.
        ordered: Memory that it takes in our order.
        stays: Why the stock order is kept; empty if ours is better.
    """

    model: bytes
    order: Order
    stock: StockMemory
    ordered: StockMemory
    stays: str


def export_onnxruntime(
    path: Path,
    find_order: FindOrder,
    *,
    dims: Mapping[str, int] = _NO_DIMS,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    values: Mapping[str, float] = _NO_VALUES,
) -> OnnxruntimeExport:
    """Return the optimised model in our order if a stock session then takes less memory.

    The optimiser is this machine's: the file may have kernels that others lack.

    Args:
        path: An ONNX file.
        find_order: Finds an order of a program's steps.
        dims: Values of free dimensions, by name.
        shapes: Shapes of graph inputs, by name.
        values: Inputs fixed at a value, by name, that the exported model then does not take.

    Raises:
        ModelError: The model cannot be read, or ONNX Runtime refuses it.
        UnexpectedRuntimeError: This version of ONNX Runtime does not note its memory.
        MissingDependencyError: The package onnx or onnxruntime is absent.
    """
    with needing("onnx", "onnx", f"reading {path.name!r}"):
        import onnx
    with tempfile.TemporaryDirectory() as folder:
        given, dims, shapes = _with_values(path, dims, shapes, values, Path(folder))
        with named_instead(given, path), missing_files_named(path):
            return _exported(onnx, given, find_order, dims, shapes, Path(folder))


def _exported(
    onnx: Any,
    path: Path,
    find_order: FindOrder,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    folder: Path,
) -> OnnxruntimeExport:
    optimised_path = folder / f"optimised-{path.name}"
    session, model = _optimised(onnx, path, optimised_path)
    feeds = drawn_feeds(path, session.get_inputs(), dims, shapes)
    optimised_path.write_bytes(model.SerializeToString())
    with named_instead(optimised_path, path):
        source = read(
            optimised_path,
            dims=dims,
            shapes=shapes,
            alignment=ALIGNMENT,
            order=lambda program, rules: find_order(_without_inputs(program), rules),
            aliases=(AliasKind.VIEWS, AliasKind.IN_PLACE),
        )
    assert source.order is not None

    nodes = list(_ordered(model.graph, source.order.steps))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    with about_file(path):
        data = _serialised(model)
    stock = stock_memory(path, _arena_alone(stock_options()), feeds)
    with about_file(path):
        ordered = stock_memory(data, _arena_alone(ordered_options()), feeds)
    stays = _objection(nodes, stock, ordered)
    return OnnxruntimeExport(
        _whole(onnx, path) if stays else data, source.order, stock, ordered, stays
    )


def _with_values(
    path: Path,
    dims: Mapping[str, int],
    shapes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, float],
    folder: Path,
) -> tuple[Path, Mapping[str, int], Mapping[str, tuple[int, ...]]]:
    """Return a file with fixed inputs, and the dimensions and shapes of the other inputs."""
    if not values:
        return path, dims, shapes
    from arenite.planner.importers.onnx import fixed_model, load_model, open_names

    model = fixed_model(path, dims, shapes, values)
    fixed = folder / path.name
    fixed.write_bytes(model.SerializeToString())
    free, _ = open_names(model.graph)
    open_before, _ = open_names(load_model(path).graph)
    return (
        fixed,
        {name: n for name, n in dims.items() if name in free or name not in open_before},
        {name: shape for name, shape in shapes.items() if name not in values},
    )


def _optimised(onnx: Any, path: Path, destination: Path) -> tuple[Any, Any]:
    """Return a stock session and the model it runs, every node with a name of its own."""
    options = stock_options()
    options.optimized_model_filepath = str(destination)
    session = stock_session(path, options)
    model = onnx.load(destination, load_external_data=False)
    graph = model.graph
    _embed(graph, path)  # it refers to files beside the model, not beside itself
    names = Names()
    for node in graph.node:
        node.name = names.take(node.name or node.op_type)
    drop_unfed_inputs(graph, {value.name for value in session.get_inputs()})
    return session, model


def _whole(onnx: Any, path: Path) -> bytes:
    """Return the model with its external data inside."""
    data = read_model(path)
    model = onnx.ModelProto.FromString(data)
    if not _embed(model.graph, path):
        return data
    with about_file(path):
        return _serialised(model)


def _embed(graph: Any, path: Path) -> bool:
    """Read the weights that lie beside the model into its graph; return whether any did."""
    from arenite.planner.importers.onnx import embed

    with about_file(path):
        return embed(graph, path.parent) > 0


def _serialised(model: Any) -> bytes:
    from arenite.planner.importers.onnx import MOST_BYTES

    if model.ByteSize() > MOST_BYTES:
        raise UnsupportedModelError("model", "model and weights take 2 GiB or more")
    data: bytes = model.SerializeToString()
    return data


def _without_inputs(program: Program) -> Program:
    """Return the program with its inputs outside the arena: they are the caller's."""
    names = program.input_tensors
    tensors = {
        name: replace(tensor, kind=TensorKind.CONSTANT) if name in names else tensor
        for name, tensor in program.tensors.items()
    }
    return replace(program, tensors=tensors, inputs=())


def _ordered(graph: Any, order: tuple[str, ...]) -> Iterator[Any]:
    """Yield the nodes in our order, those that we folded away as late as they may be."""
    from arenite.planner.importers.onnx import node_reads

    by_name = {node.name: node for node in graph.node}
    writers = {output: node.name for node in graph.node for output in node.output if output}
    done: set[str] = set()
    wanted = [name for name in order if name in by_name]
    for first in (*wanted, *by_name):
        pending = [first]
        while pending:
            name = pending[-1]
            if name in done:
                pending.pop()
                continue
            missing = [
                writers[each]
                for each in node_reads(by_name[name])
                if each in writers and writers[each] not in done
            ]
            if missing:
                pending += missing
                continue
            done.add(pending.pop())
            yield by_name[name]


def _arena_alone(options: Any) -> Any:
    options.enable_mem_pattern = False
    return options


def _objection(nodes: list[Any], stock: StockMemory, ordered: StockMemory) -> str:
    expected, found = (
        [np.asarray(output).tobytes() for output in memory.outputs] for memory in (stock, ordered)
    )
    if found != expected:
        return "the outputs differ"
    if not _is_kept(nodes, ordered.order):
        return "ONNX Runtime does not keep the order"
    if ordered.tensors >= stock.tensors:
        return "the model's own order needs no more memory"
    return ""


def _is_kept(nodes: list[Any], order: tuple[str, ...]) -> bool:
    """Tell whether the nodes ran in their order; those of subgraphs run between them."""
    expected = [node.name for node in nodes if node.op_type not in _HURRIED]
    known = set(expected)
    return [name for name in order if name in known] == expected
