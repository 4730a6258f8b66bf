"""Whatever shares storage, the run gives the same bits; and it never needs more."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import AliasKind, Boundary
from arenite.planner.rewrites.aliasing.rewrite import share
from arenite.planner.tensors import TensorKind
from support.arena_interpreter import BINARY, UNARY, matrix, run
from support.tiny_graphs import step

_WHOLE = (
    AliasKind.VIEWS, AliasKind.IN_PLACE, AliasKind.NORMALISATION, AliasKind.REUSE_INPUTS
)  # fmt: skip
_MAX_ROWS, _MAX_COLUMNS = 8, 12


class _Program:
    """A graph that grows by one random operator at a time."""

    def __init__(self, draw):
        self._draw = draw
        self.tensors = [
            matrix("x", 4, 3, kind=TensorKind.INPUT), matrix("w", 1, 6, kind=TensorKind.INPUT)
        ]  # fmt: skip
        self.steps = []

    def grow(self):
        op_type = self._draw(
            st.sampled_from([*UNARY, *BINARY, "Reshape", "Split", "Slice", "Concat", "Concat"])
        )
        source = self._draw(st.sampled_from(self.tensors))
        getattr(self, op_type.lower(), lambda s: self.keep_shape(op_type, s))(source)

    def keep_shape(self, op_type, source):
        operands = [source]
        if op_type in BINARY:
            operands.append(
                self._draw(st.sampled_from([t for t in self.tensors if t.shape == source.shape]))
            )
        self._add(op_type, operands, [source.shape])

    def reshape(self, source):
        rows, columns = source.shape
        count = rows * columns
        shapes = [(r, count // r) for r in range(1, _MAX_ROWS + 1) if count % r == 0]
        self._add("Reshape", [source], [self._draw(st.sampled_from(shapes))])

    def split(self, source):
        axis = self._draw(st.integers(0, 1))
        length = source.shape[axis]
        if length < 2:
            return
        at = self._draw(st.integers(1, length - 1))
        shapes = [_with(source.shape, axis, n) for n in (at, length - at)]
        self._add("Split", [source], shapes, {"axis": axis})

    def slice(self, source):
        starts = tuple(self._draw(st.integers(0, n - 1)) for n in source.shape)
        shape = tuple(
            self._draw(st.integers(1, n - s)) for s, n in zip(starts, source.shape, strict=True)
        )
        self._add("Slice", [source], [shape], {"starts": starts})

    def concat(self, source):
        axis = self._draw(st.integers(0, 1))
        limit = (_MAX_ROWS, _MAX_COLUMNS)[axis]
        fit = [t for t in self.tensors if t.shape[1 - axis] == source.shape[1 - axis]]
        operands = [source, *self._draw(st.lists(st.sampled_from(fit), max_size=3))]
        length = sum(operand.shape[axis] for operand in operands)
        if length <= limit:
            self._add("Concat", operands, [_with(source.shape, axis, length)], {"axis": axis})

    def _add(self, op_type, operands, shapes, attributes=None):
        index = len(self.steps)
        results = [matrix(f"t{index}.{i}", *shape) for i, shape in enumerate(shapes)]
        self.tensors += results
        self.steps.append(
            step(
                f"{op_type}_{index}",
                op_type,
                tuple(operand.name for operand in operands),
                tuple(result.name for result in results),
                attributes or {},
            )
        )


def _with(shape, axis, length):
    return tuple(length if a == axis else n for a, n in enumerate(shape))


@st.composite
def programs(draw):
    program = _Program(draw)
    for _ in range(draw(st.integers(1, 14))):
        program.grow()
    names = [tensor.name for tensor in program.tensors]
    outputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return Program.of("program", program.tensors, program.steps, ["x", "w"], outputs)


_KINDS = st.one_of(
    st.just(tuple(AliasKind)), st.lists(st.sampled_from(tuple(AliasKind)), unique=True).map(tuple)
)


@settings(max_examples=300)
@given(programs(), _KINDS, st.sampled_from(tuple(Boundary)), st.sampled_from([1, 8, 16]))
def test_a_run_with_shared_storage_gives_the_same_bits(graph, kinds, boundary, alignment):
    inputs = {"x": np.arange(-5, 7).reshape(4, 3), "w": np.arange(20, 26).reshape(1, 6)}
    expected = run(graph, inputs, boundary)
    aliased = share(graph, kinds, boundary, alignment)
    actual = run(aliased, inputs, boundary, alignment)
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, name)


@given(programs(), st.sampled_from(tuple(Boundary)))
def test_shared_storage_never_needs_more(graph, boundary):
    plain, whole, everything = (
        liveness(share(graph, kinds, boundary), boundary=boundary)
        for kinds in ((), _WHOLE, tuple(AliasKind))
    )
    assert everything.lower_bound <= whole.lower_bound <= plain.lower_bound
    assert everything.naive <= whole.naive <= plain.naive


@given(programs(), _KINDS, st.sampled_from([1, 8, 16]))
def test_every_place_in_a_storage_is_aligned(graph, kinds, alignment):
    aliased = share(graph, kinds, alignment=alignment)
    assert all(aliased.root(name)[1] % alignment == 0 for name in aliased.tensors)
