"""Working memory of steps: planned, told alike by Python and by the core, and required."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.operators.operator import Operands
from arenite.planner.tensors import DType, Tensor
from arenite.runtime import ProgramError, Session
from arenite.runtime.operators import (
    PANEL,
    Conv2D,
    DetectionPostProcess,
    Gru,
    Lstm,
    MatMul,
    Rfft2D,
    Rnn,
    TransposedConv2D,
)
from support.one_step import Given, constant, one_step
from support.running import assert_same, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save

GENERATOR = np.random.default_rng(11)


def random_matmul():
    depth, columns, batch = map(int, GENERATOR.integers(1, 70, 3))
    rows = int(GENERATOR.integers(2, 70))
    operator = MatMul(transpose_a=bool(rows % 2), transpose_b=bool(columns % 3))
    a = (depth, rows) if operator.transpose_a else (rows, depth)
    b = (columns, depth) if operator.transpose_b else (depth, columns)
    kernel = {"transpose_a": operator.transpose_a, "transpose_b": operator.transpose_b}
    operands = [Given((batch, *a)), Given(b)], [Given((batch, rows, columns))]
    return operator, "MatMul", kernel, *operands


def random_layer(kind):
    times, batch, depth, units = map(int, GENERATOR.integers(1, 20, 4))
    directions = int(GENERATOR.integers(1, 3))
    gates = kind.num_gates
    attributes = {} if kind is Rnn else {"batch_major": bool(units % 2)}
    operator = kind(**attributes)
    tiles, columns = -(-units // PANEL), gates * PANEL
    x = (batch, times, depth) if attributes.get("batch_major") else (times, batch, depth)
    weights = [(directions, tiles, depth, columns), (directions, tiles, units, columns)]
    biases = [(directions, tiles, columns), (directions, tiles, PANEL)][: 2 if kind is Gru else 1]
    states = [Given((directions, batch, units))] * (2 if kind is Lstm else 1)
    constants = [constant(np.zeros(shape, np.float32)) for shape in (*weights, *biases)]
    inputs = [Given(x), *constants, *[None] * len(states)]
    outputs = [Given((times, directions, batch, units)), *states]
    return operator, kind.__name__, attributes, inputs, outputs


def random_detection():
    boxes, columns, most = map(int, GENERATOR.integers(1, 40, 3))
    kernel = {"num_classes": columns, "max_detections": most, "scales": [1.0] * 4}
    inputs = [Given((1, boxes, 4)), Given((1, boxes, columns)), Given((boxes, 4))]
    outputs = [Given((1, most, 4)), Given((1, most)), Given((1, most)), Given((1,))]
    operator = DetectionPostProcess(num_classes=columns, max_detections=most)
    return operator, "DetectionPostProcess", kernel, inputs, outputs


def random_transform():
    rows, columns = (2 ** int(exponent) for exponent in GENERATOR.integers((0, 1), 6))
    result = Given((3, rows, columns // 2 + 1, 2))
    kernel = {"rows": rows, "columns": columns}
    return Rfft2D(**kernel), "Rfft2D", kernel, [Given((3, 5, 9))], [result]


def random_tiles():
    tile = int(GENERATOR.choice([2, 4]))
    threads, rows, columns = map(int, GENERATOR.integers(1, 40, 3))
    inputs = int(GENERATOR.choice([3, 100, 255, 256, 300]))
    outputs = int(GENERATOR.choice([5, 17, 64, 90]))
    padding, kernel = (1, 1, 1, 1), {"tile": tile, "tile_threads": threads, "padding": [1] * 4}
    weights = constant(np.zeros((-(-outputs // PANEL), 3, 3, inputs, PANEL), np.float32))
    operator = Conv2D(padding=padding, tile=tile, tile_threads=threads)
    operands = [Given((1, rows, columns, inputs)), weights], [Given((1, rows, columns, outputs))]
    least = replace(operator, tile_scratch=operator.least_scratch(operands_of(*operands)))
    return least, "Conv2D", kernel, *operands


def random_transposed():
    sizes = GENERATOR.integers(1, 6, (4, 2)).tolist()
    strides, dilations, kernel, lengths = map(tuple, sizes)
    groups = int(GENERATOR.integers(1, 4))
    inputs, outputs = map(int, GENERATOR.choice([1, 1, 18], 2))
    operator = TransposedConv2D(
        strides=strides, dilations=dilations, groups=groups, by_inputs=True
    )
    attributes = {"strides": strides, "dilations": dilations, "groups": groups, "by_inputs": True}
    made = [
        stride * (length - 1) + dilation * (taps - 1) + 1
        for stride, length, dilation, taps in zip(strides, lengths, dilations, kernel, strict=True)
    ]
    operands = [Given((2, *lengths, groups * inputs)), Given((groups * inputs, outputs, *kernel))]
    return (
        operator,
        "TransposedConv2D",
        attributes,
        operands,
        [Given((2, *made, groups * outputs))],
    )


def random_spread():
    columns, stride, taps, inputs, images = map(
        int, GENERATOR.integers((1, 1, 2, 1, 1), (99, 9, 40, 20, 4))
    )
    outputs = int(GENERATOR.integers(1, PANEL))
    weights = constant(np.zeros((outputs, 1, taps, inputs), np.float32))
    result = Given((images, 1, stride * (columns - 1) + taps - 1, outputs))
    operands = [Given((images, 1, columns, inputs)), weights], [result]
    # A column that is cut off keeps the phases of the strides apart.
    attributes = {"strides": [1, stride], "padding": [0, 0, 0, 1]}
    operator = TransposedConv2D(strides=(1, stride), padding=(0, 0, 0, 1))
    return operator, "TransposedConv2D", attributes, *operands


def operands_of(inputs, outputs):
    """Return what an operator is asked about, of the operands of a step."""
    one, other = (
        tuple(
            None if each is None else Tensor(f"t{n}", DType.FLOAT32, tuple(each.shape))
            for n, each in enumerate(side)
        )
        for side in (inputs, outputs)
    )
    return Operands(one, other)


RANDOM = {
    "MatMul": random_matmul,
    "Lstm": lambda: random_layer(Lstm),
    "Gru": lambda: random_layer(Gru),
    "Rnn": lambda: random_layer(Rnn),
    "DetectionPostProcess": random_detection,
    "Rfft2D": random_transform,
    "Conv2D": random_tiles,
    "TransposedConv2D": random_transposed,
    "TransposedConv2D of few outputs": random_spread,
}


@pytest.mark.parametrize("kind", RANDOM)
def test_python_and_the_core_tell_the_same_working_memory(kind):
    for _ in range(20):
        operator, name, kernel, inputs, outputs = RANDOM[kind]()
        needed = operator.scratch(operands_of(inputs, outputs))
        assert needed > 0
        Session.of_pieces(one_step(name, kernel, inputs, outputs, scratch=needed), "right").close()
        with pytest.raises(ProgramError, match=f"has {needed - 1} B; it needs {needed}"):
            Session.of_pieces(
                one_step(name, kernel, inputs, outputs, scratch=needed - 1), "one byte too small"
            )


@pytest.mark.parametrize("kind", RANDOM)
def test_a_step_without_its_working_memory_is_refused(kind):
    _, name, kernel, inputs, outputs = RANDOM[kind]()
    with pytest.raises(ProgramError, match="has 0 B; it needs"):
        Session.of_pieces(one_step(name, kernel, inputs, outputs), "none")


def test_working_memory_that_is_not_aligned_is_refused():
    operator, name, kernel, inputs, outputs = random_matmul()
    needed = operator.scratch(operands_of(inputs, outputs))
    with pytest.raises(ProgramError, match="not aligned to 64 B"):
        Session.of_pieces(
            one_step(name, kernel, inputs, outputs, scratch=needed, shift=4), "misaligned"
        )


def test_the_plan_has_the_working_memory(tmp_path):
    path = save(tmp_path, parse("(float[3,40] x, float[40,50] y) => (z) { z = MatMul(x, y) }"))
    problem = compile_model(path).source.problem
    (scratch,) = (record for record in problem.records if not record.tensors)
    assert (scratch.size, scratch.start, scratch.end) == (4 * 64 * 40, 0, 1)
    with Session(build(path, tmp_path), poison=0xFF) as session:
        assert session.arena_bytes >= sum(record.size for record in problem.records)
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds))


@pytest.mark.parametrize("function", ["MatMul(x, y)", "MatMul(x, t)"])
def test_a_row_is_multiplied_without_working_memory(tmp_path, function):
    text = (
        "(float[3,1,40] x, float[3,40,40] y) => (z) "
        f"{{ t = Transpose<perm=[0,2,1]>(y) z = {function} }}"
    )
    problem = compile_model(save(tmp_path, parse(text))).source.problem
    assert all(record.tensors for record in problem.records)


class Mallinfo(ctypes.Structure):
    """What glibc says of its heap."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def heap_bytes():
    """Bytes of the heap that are in use."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("this C library does not say what its heap holds")
    library.mallinfo2.restype = Mallinfo
    info = library.mallinfo2()
    return info.uordblks + info.hblkhd


LARGE = 1 << 20
HALVES = [i // 2 for i in range(LARGE)]
LARGE_STEPS = {
    "MatMul": lambda: one_step(
        "MatMul", {}, [Given((8, 1024)), Given((1024, 1024))], [Given((8, 1024))],
        scratch=4 * LARGE,
    ),
    "MatMul of many matrices": lambda: one_step(
        "MatMul", {}, [Given((LARGE, 1, 2)), Given((2, 1))], [Given((LARGE, 1, 1))],
        scratch=4 * 16 * 2,
    ),
    "Reduce of rows": lambda: one_step(
        "Reduce", {"function": "sum", "axes": [1]}, [Given((LARGE, 2))], [Given((LARGE,))]
    ),
    "Reduce of columns": lambda: one_step(
        "Reduce", {"function": "sum", "axes": [0, 2]}, [Given((LARGE, 2, 2, 2))], [Given((2, 2))]
    ),
    "Resize2D": lambda: one_step(
        "Resize2D", {"row_low": HALVES, "column_low": [0]},
        [Given((1, LARGE // 2, 1, 1))], [Given((1, LARGE, 1, 1))],
    ),
    "Gather": lambda: one_step(
        "Gather", {"axis": 0}, [Given((8, 2)), Given((LARGE,), "int32")], [Given((LARGE, 2))]
    ),
    "Binary": lambda: one_step(
        "Binary", {"function": "power"}, [Given((LARGE, 1)), Given((1, 3))], [Given((LARGE, 3))]
    ),
    "Select": lambda: one_step(
        "Select", {}, [Given((LARGE, 1), "bool"), Given((3,)), Given((1,))], [Given((LARGE, 3))]
    ),
    "Copy": lambda: one_step(
        "Copy", {"moves": [{"shape": [LARGE, 2], "input_strides": [1, LARGE],
        "output_strides": [2, 1]}]}, [Given((2, LARGE))], [Given((LARGE, 2))],
    ),
}  # fmt: skip
"""Steps of a million elements or more."""


@pytest.mark.parametrize("name", LARGE_STEPS)
def test_no_step_keeps_on_the_heap_what_grows_with_a_tensor(name):
    pieces = LARGE_STEPS[name]()
    before = heap_bytes()
    with Session.of_pieces(pieces, name) as session:
        session.invoke()
        # The program itself, with the tables in it, is a copy of what the file has.
        assert heap_bytes() - before - session.memory().program < 64 << 10
