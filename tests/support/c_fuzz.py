"""Random networks through our runtime and through compiled C, whole and in bands of rows.

`PYTHONPATH=tests python -m support.c_fuzz COUNT --seed N` runs as many as wanted.
"""

import argparse
import logging
import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from arenite.pipeline.session import Session
from arenite.pipeline.targets.c import lower_model_for_c
from arenite.planner import derive
from arenite.runtime.cexport import (
    CExport,
    COptions,
    HostTest,
    Interface,
    NotExportedError,
    Vectors,
    export_c,
    run_on_host,
    vectors,
)
from arenite.runtime.cexport.compiled import CompiledForC
from arenite.strategies import find
from support.exported_c import Bands

SANITIZED = (
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0", "-Wall", "-Wextra",
    "-Werror",
)  # fmt: skip
"""Without optimisation sanitizers see every access, and compilation takes half the time."""
_SHARE = 1e-4
"""Floats may differ by this part of the scale: sums of random numbers cancel."""

_MOVES = ("Reshape", "Slice", "Transpose", "Split")
_EXACT = (*_MOVES, "Concat", "Max", "Min", "Neg", "Relu")
"""Operators whose results have no other bits in another order of sums."""
_MOST_ELEMENTS = 3000

Shape = tuple[int, int, int]


class _Network:
    """A network of float images that grows by one random operator at a time."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.numbers = np.random.default_rng(draw.randrange(1 << 30))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shapes: dict[str, Shape] = {
            "x": (draw.randint(1, 5), draw.randint(3, 8), draw.randint(3, 8))
        }
        self.exact = {"x"}

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int) -> str:
        size = math.sqrt(math.prod(shape[1:]))
        return self.constant((self.numbers.standard_normal(shape) / size).astype(np.float32))

    def node(self, kind: str, inputs: list[str], **fields: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"n_{name}", **fields))
        return name

    def add(self, kind: str, inputs: list[str], shape: Shape, **fields: object) -> None:
        name = self.node(kind, inputs, **fields)
        self.shapes[name] = shape
        if kind in _EXACT and self.exact.issuperset(inputs[:1] if kind in _MOVES else inputs):
            self.exact.add(name)

    def any(self) -> tuple[str, Shape]:
        """Return a tensor, most often the last."""
        names = list(self.shapes)
        name = names[-1] if self.draw.random() < 0.7 else self.draw.choice(names)
        return name, self.shapes[name]

    def convolve(self) -> None:
        name, (depth, rows, columns) = self.any()
        draw = self.draw
        kernel = [draw.randint(1, min(3, rows)), draw.randint(1, min(3, columns))]
        strides = [draw.randint(1, 2), draw.randint(1, 2)]
        pads = [draw.randrange(kernel[i % 2]) for i in range(4)]
        groups = depth if draw.random() < 0.4 else 1
        outputs = groups * draw.randint(1, 2) if groups > 1 else draw.randint(1, 7)
        sizes = [
            (length + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1
            for i, length in enumerate((rows, columns))
        ]
        inputs = [name, self.weights(outputs, depth // groups, *kernel), self.weights(outputs)]
        self.add(
            "Conv", inputs, (outputs, sizes[0], sizes[1]), kernel_shape=kernel, strides=strides,
            pads=pads, group=groups,
        )  # fmt: skip

    def pool(self) -> None:
        name, (depth, rows, columns) = self.any()
        kernel = [self.draw.randint(1, min(3, rows)), self.draw.randint(1, min(3, columns))]
        strides = [self.draw.randint(1, 2), self.draw.randint(1, 2)]
        sizes = [
            (length - kernel[i]) // strides[i] + 1 for i, length in enumerate((rows, columns))
        ]
        kind = self.draw.choice(["MaxPool", "AveragePool"])
        self.add(kind, [name], (depth, sizes[0], sizes[1]), kernel_shape=kernel, strides=strides)

    def map(self) -> None:
        name, shape = self.any()
        functions: list[tuple[str, dict[str, float]]] = [
            ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"alpha": 0.2}),
            ("Neg", {}), ("HardSigmoid", {}), ("Elu", {}), ("HardSwish", {}), ("Softplus", {}),
            ("Erf", {}), ("Abs", {}), ("Celu", {}),
            ("Softmax", {"axis": self.draw.randint(1, 3)}),
        ]  # fmt: skip
        kind, fields = self.draw.choice(functions)
        self.add(kind, [name], shape, **fields)

    def combine(self) -> None:
        name, shape = self.any()
        kind = self.draw.choice(["Add", "Mul", "Sub", "Max", "Min"])
        same = [each for each, other in self.shapes.items() if other == shape and each != name]
        if same and self.draw.random() < 0.7:
            other = self.draw.choice(same)
        else:
            lengths = [self.draw.choice([1, length]) for length in shape]
            other = self.weights(1, *self.draw.choice([(shape[0], 1, 1), lengths]))
        self.add(kind, [name, other], shape)

    def join(self) -> None:
        name, shape = self.any()
        axis = self.draw.randint(1, 3)
        rest = [i for i in range(3) if i != axis - 1]
        others = [
            each
            for each, other in self.shapes.items()
            if all(other[i] == shape[i] for i in rest) and each != name
        ]
        if not others:
            self.map()
            return
        names = [name, *self.draw.sample(others, self.draw.randint(1, min(2, len(others))))]
        self.draw.shuffle(names)
        made = list(shape)
        made[axis - 1] = sum(self.shapes[each][axis - 1] for each in names)
        self.add("Concat", names, (made[0], made[1], made[2]), axis=axis)

    def turn(self) -> None:
        name, (depth, rows, columns) = self.any()
        if self.draw.random() < 0.5:
            self.add("Transpose", [name], (depth, columns, rows), perm=[0, 1, 3, 2])
            return
        target = self.constant(np.array([1, columns, depth, rows], np.int64))
        self.add("Reshape", [name, target], (columns, depth, rows))

    def permute(self) -> None:
        name, shape = self.any()
        axes = self.draw.sample(range(3), 3)
        made = [shape[axis] for axis in axes]
        perm = [0, *(axis + 1 for axis in axes)]
        self.add("Transpose", [name], (made[0], made[1], made[2]), perm=perm)

    def split(self) -> None:
        name, shape = self.any()
        axis = self.draw.randrange(3)
        if shape[axis] < 2:
            self.map()
            return
        first = self.draw.randint(1, shape[axis] - 1)
        lengths = first, shape[axis] - first
        made = list(shape)
        made[axis] = first
        operands = [name, self.constant(np.array(lengths, np.int64))]
        self.add("Split", operands, (made[0], made[1], made[2]), axis=axis + 1)
        made[axis] = lengths[1]
        last, other = next(reversed(self.shapes)), f"t{len(self.nodes) - 1}b"
        self.nodes[-1].output.append(other)
        self.shapes[other] = made[0], made[1], made[2]
        if last in self.exact:
            self.exact.add(other)

    def stride(self) -> None:
        name, shape = self.any()
        axis, step = self.draw.randrange(3), self.draw.choice([2, 3, -1, -2])
        limits = (0, shape[axis], axis + 1, step) if step > 0 else (
            shape[axis] - 1, -shape[axis] - 1, axis + 1, step
        )  # fmt: skip
        made = list(shape)
        made[axis] = -(-shape[axis] // abs(step))
        operands = [self.constant(np.array([each], np.int64)) for each in limits]
        self.add("Slice", [name, *operands], (made[0], made[1], made[2]))

    def pad(self) -> None:
        name, (depth, rows, columns) = self.any()
        draw = self.draw
        mode = draw.choice(["constant", "edge", "reflect"])
        most = [min(3, each) if mode == "reflect" else 3 for each in (rows, columns)]
        top, left, bottom, right = (draw.randrange(most[i % 2]) for i in range(4))
        pads = self.constant(np.array([0, 0, top, left, 0, 0, bottom, right], np.int64))
        shape = depth, rows + top + bottom, columns + left + right
        self.add("Pad", [name, pads], shape, mode=mode)

    def enlarge(self) -> None:
        name, (depth, rows, columns) = self.any()
        draw = self.draw
        factors = draw.randint(1, 3), draw.randint(1, 3)
        shape = depth, rows * factors[0], columns * factors[1]
        if math.prod(shape) > _MOST_ELEMENTS:
            self.map()
            return
        scales = self.constant(np.array([1, 1, *factors], np.float32))
        mode, places = draw.choice(
            [("nearest", "asymmetric"), ("linear", "asymmetric"), ("linear", "half_pixel"),
             ("linear", "align_corners")]
        )  # fmt: skip
        self.add(
            "Resize", [name, "", scales], shape, mode=mode, nearest_mode="floor",
            coordinate_transformation_mode=places,
        )  # fmt: skip

    def cut(self) -> None:
        name, shape = self.any()
        axis = self.draw.randrange(3)
        first = self.draw.randrange(shape[axis])
        end = self.draw.randint(first + 1, shape[axis])
        limits = [self.constant(np.array([each], np.int64)) for each in (first, end, axis + 1)]
        made = list(shape)
        made[axis] = end - first
        self.add("Slice", [name, *limits], (made[0], made[1], made[2]))

    def multiply(self) -> None:
        name, (depth, rows, columns) = self.any()
        draw = self.draw
        fitting = [
            each
            for each, other in self.shapes.items()
            if other[1] == columns and (other[0] == depth or 1 in (other[0], depth))
        ]
        if fitting and draw.random() < 0.6:
            other = draw.choice(fitting)
            batch, _, width = self.shapes[other]
        elif draw.random() < 0.5:
            other = self.node("Transpose", [name], perm=[0, 1, 3, 2])
            batch, width = depth, rows
        else:
            batch, width = draw.choice([1, depth]), draw.randint(1, 6)
            other = self.weights(1, batch, columns, width)
        self.add("MatMul", [name, other], (max(depth, batch), rows, width))

    def normalise(self) -> None:
        name, shape = self.any()
        axis = self.draw.randint(1, 2)
        operands = [name, self.weights(*shape[axis:])]
        if self.draw.random() < 0.7:
            operands.append(self.weights(*shape[axis:]))
        self.add("LayerNormalization", operands, shape, axis=axis + 1, epsilon=0.1)

    def gather(self) -> None:
        name, shape = self.any()
        axis, count = self.draw.randrange(3), self.draw.randint(2, 5)
        made = list(shape)
        if self.draw.random() < 0.5:
            kind = self.draw.choice([np.int32, np.int64])
            indices = self.numbers.integers(-shape[axis], shape[axis], count).astype(kind)
            made[axis] = count
            operands = [name, self.constant(indices)]
            self.add("Gather", operands, (made[0], made[1], made[2]), axis=axis + 1)
            return
        name, shape = self.any_exact()
        places = self.node("ArgMax", [name], axis=3, keepdims=0)
        table = self.weights(shape[2], count)
        self.add("Gather", [table, places], (shape[0], shape[1], count), axis=0)

    def any_exact(self) -> tuple[str, Shape]:
        """Return a tensor whose bits are certain, for results that jump."""
        name = self.draw.choice(sorted(self.exact))
        return name, self.shapes[name]

    def select(self) -> None:
        name, shape = self.any_exact()
        draw = self.draw
        threshold = self.constant(np.array(draw.uniform(-0.5, 0.5), np.float32))
        kind = draw.choice(["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"])
        condition = self.node(kind, [name, threshold])
        if draw.random() < 0.4:
            positive = self.node("Greater", [self.any_of(shape, self.exact), threshold])
            joined = self.node(draw.choice(["And", "Or", "Xor"]), [condition, positive])
            condition = self.node("Not", [joined]) if draw.random() < 0.5 else joined
        if draw.random() < 0.2:
            self.add("Cast", [condition], shape, to=onnx.TensorProto.FLOAT)
            return
        values = [self.any_of(shape, self.shapes), self.weights(*draw.choice([(1,), shape[1:]]))]
        draw.shuffle(values)
        self.add("Where", [condition, *values], shape)

    def any_of(self, shape: Shape, names: Iterable[str]) -> str:
        return self.draw.choice(sorted(each for each in names if self.shapes[each] == shape))

    def count(self) -> None:
        """Add arithmetic of integers: floats become some, and they become floats."""
        name, shape = self.any_exact()
        draw = self.draw
        kind = draw.choice([onnx.TensorProto.INT32, onnx.TensorProto.INT64])
        whole = self.node("Cast", [name], to=kind)
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        other = self.constant(self.numbers.integers(-3, 4, (1, *shape)).astype(dtype))
        made = self.node(draw.choice(["Add", "Sub", "Mul", "Max", "Min"]), [whole, other])
        if draw.random() < 0.3:
            made = self.node(draw.choice(["Equal", "Less"]), [whole, made])
        self.add("Cast", [made], shape, to=onnx.TensorProto.FLOAT)

    def spread(self) -> None:
        name, (depth, rows, columns) = self.any()
        draw = self.draw
        kernel = [draw.randint(1, 3), draw.randint(1, 3)]
        strides = [draw.randint(1, 3), draw.randint(1, 3)]
        pads = [draw.randrange(kernel[i % 2]) for i in range(4)]
        added = [draw.randrange(each) for each in strides]
        sizes = [
            (length - 1) * strides[i] - pads[i] - pads[i + 2] + kernel[i] + added[i]
            for i, length in enumerate((rows, columns))
        ]
        if min(sizes) < 1 or depth * sizes[0] * sizes[1] > _MOST_ELEMENTS:
            self.map()
            return
        groups = depth if draw.random() < 0.3 else 1
        outputs = draw.randint(1, 3)
        inputs = [name, self.weights(depth, outputs, *kernel), self.weights(groups * outputs)]
        self.add(
            "ConvTranspose", inputs, (groups * outputs, sizes[0], sizes[1]), kernel_shape=kernel,
            strides=strides, pads=pads, output_padding=added, group=groups,
        )  # fmt: skip

    def power(self) -> None:
        name, shape = self.any()
        positive = self.node("Sigmoid", [name])
        exponent = self.constant(np.array(self.draw.uniform(0.5, 3), np.float32))
        self.add("Pow", [positive, exponent], shape)

    def reduce(self) -> None:
        name, (depth, rows, columns) = self.any()
        axes = self.draw.choice([[1], [2], [3], [2, 3]])
        made = [1 if i + 1 in axes else each for i, each in enumerate((depth, rows, columns))]
        kind = self.draw.choice(["ReduceMean", "ReduceMax", "ReduceMin", "GlobalAveragePool"])
        if kind == "GlobalAveragePool":
            self.add(kind, [name], (depth, 1, 1))
        else:
            self.add(kind, [name], (made[0], made[1], made[2]), axes=axes, keepdims=1)

    def model(self) -> onnx.ModelProto:
        kinds: list[Callable[[], None]] = [
            self.convolve, self.convolve, self.convolve, self.pool, self.map, self.map,
            self.combine, self.combine, self.join, self.join, self.turn, self.cut, self.reduce,
            self.multiply, self.multiply, self.normalise, self.gather, self.select, self.count,
            self.spread, self.power, self.permute, self.split, self.split, self.stride, self.pad,
            self.enlarge,
        ]  # fmt: skip
        self.convolve()
        for _ in range(self.draw.randint(2, 7)):
            self.draw.choice(kinds)()
        read = {name for node in self.nodes for name in node.input}
        ports = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, *shape])
            for name, shape in self.shapes.items()
        ]
        outputs = [port for port in ports[1:] if port.name not in read]
        graph = helper.make_graph(self.nodes, "random", ports[:1], outputs, self.constants)
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def random_model(seed: int, folder: Path) -> Path:
    """Write a random network, of floats or quantised, and return its path."""
    draw = random.Random(seed)
    model = _Network(draw).model()
    path = folder / f"random_{seed}.onnx"
    onnx.save(model, path)
    return path if draw.random() < 0.5 else _quantised(path, draw)


def _quantised(path: Path, draw: random.Random) -> Path:
    from onnxruntime.quantization import QuantType, quantize_static

    graph = onnx.load(path).graph
    shape = [each.dim_value for each in graph.input[0].type.tensor_type.shape.dim]
    # The quantiser takes no scale a channel of these where they have a bias.
    kinds = {node.op_type for node in graph.node}
    by_channel = draw.random() < 0.5 and kinds.isdisjoint({"ConvTranspose", "LayerNormalization"})
    random_numbers = np.random.default_rng(1)

    class Feeds:
        def __init__(self) -> None:
            self.left = [random_numbers.standard_normal(shape).astype(np.float32)] * 2

        def get_next(self) -> dict[str, np.ndarray] | None:
            return {"x": self.left.pop()} if self.left else None

    made = path.with_name(f"{path.stem}_q.onnx")
    activation = draw.choice([QuantType.QInt8, QuantType.QUInt8])
    logging.disable(logging.WARNING)
    try:
        quantize_static(
            path, made, Feeds(), activation_type=activation, weight_type=QuantType.QInt8,
            per_channel=by_channel,
        )  # fmt: skip
    finally:
        logging.disable(logging.NOTSET)
    return made


def _references(path: Path, compiled: CompiledForC) -> Callable[[Interface], Vectors]:
    def run(runs: object) -> list[dict[str, np.ndarray]]:
        with Session(path, strategy=find("greedy-by-size")) as session:
            return [dict(session.run(inputs)) for inputs in runs]  # type: ignore[attr-defined]

    def made(interface: Interface) -> Vectors:
        found = vectors(path, compiled.program, interface, run, rounding=compiled.rounding)
        return replace(found, share=_SHARE)

    return made


def exports(path: Path) -> list[CExport]:
    """Return a model as C: whole, and in the least memory where bands reach less.

    Raises:
        NotExportedError: There is no kernel for some of it.
    """
    lowered = lower_model_for_c(path)
    compiled = lowered.compiled(derive(lowered.program, lowered.rules))
    plan = find("best")(compiled.source.problem)
    found = [export_c(compiled, plan, COptions(), _references(path, compiled))]
    bands = Bands(path)
    least = bands.least
    if least < plan.height:
        found.append(bands.within(least, vectors=_references(path, compiled)))
    return found


def check(seed: int, folder: Path) -> str:
    """Return `right`, `bands` if bands are right too, or `refused` and why.

    Raises:
        AssertionError: The compiled source computes something else, or a sanitizer ends it.
    """
    path = random_model(seed, folder)
    try:
        found = exports(path)
    except NotExportedError as error:
        return f"refused: {'; '.join(sorted({reason for *_, reason in error.steps}))}"
    for export in found:
        test = run_on_host(export.name, export.files, SANITIZED)
        assert test == HostTest(0), f"seed {seed}, {path.name}: {test.num_wrong} {test.message}"
    return "bands" if len(found) > 1 else "right"


def main() -> int:
    """Check as many random networks as asked for; name the wrong ones, count the refusals."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    outcomes: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = check(seed, Path(folder))
            except AssertionError as error:
                sys.stdout.write(f"\n{error}\n")
                outcome = "wrong"
        outcomes[outcome] += 1
        sys.stderr.write(f"\r{seed}: {dict(outcomes)}")
    sys.stdout.write(f"\n{dict(outcomes)}\n")
    return int(outcomes["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
