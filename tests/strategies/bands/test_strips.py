"""Chains of steps as one in strips, and as ordinary steps again."""

from dataclasses import dataclass, replace

import pytest

from arenite.planner.operators.bands import Band
from arenite.planner.operators.operator import Operator
from arenite.planner.operators.strips import Strips
from arenite.planner.operators.windows import Sliding, Window
from arenite.planner.programs.program import Program, Step
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from arenite.strategies.bands.paths import SearchStoppedError
from arenite.strategies.bands.strips import fuse, unfold


@dataclass(frozen=True)
class Tall(Operator):
    """A window of some rows and one column; rows that lie outside are padding."""

    kernel: int = 1
    stride: int = 1
    above: int = 0

    def sliding(self, operands):
        _, rows, columns, _ = operands.source.shape
        made = operands.result.shape[1]
        down = Window(rows, made, self.kernel, self.stride, 1, self.above)
        return Sliding(down, Window(columns, columns, 1, 1, 1, 0), 1, 3, 1)

    def multiply_adds(self, operands):
        return operands.result.num_elements * self.kernel

    def with_window(self, row_stride, padding):
        return replace(self, stride=row_stride, above=padding[0])


def image(name, kind=TensorKind.ACTIVATION, **more):
    return Tensor(name, DType.INT8, (1, 4, 6, 2), kind, **more)


TENSORS = (
    image("x", TensorKind.INPUT), image("a"), image("b"), image("y", TensorKind.OUTPUT),
    Tensor("w", DType.INT8, (8,), TensorKind.CONSTANT),
)  # fmt: skip
STEPS = (
    Step("one", Tall(), ("x", "w", ""), ("a",)),
    Step("two", Tall(3, 1, 1), ("a",), ("b",)),
    Step("three", Tall(), ("b",), ("y",)),
)


def program(*, tensors=TENSORS, steps=STEPS, outputs=("y",)):
    return Program.of("chain", tensors, steps, ["x"], outputs)


def test_a_chain_becomes_one_step_and_what_lay_between_is_gone():
    fused = fuse(program(), 0, 3, 4)
    (step,) = fused.steps
    assert isinstance(step.operator, Strips)
    assert (step.name, step.inputs, step.outputs) == ("three", ("x", "w"), ("y",))
    assert fused.tensors.keys() == {"x", "y", "w"}


@pytest.mark.parametrize(
    "given",
    [
        program(outputs=("y", "a")),
        program(tensors=(*TENSORS, image("v", alias=Alias("a")))),
        program(steps=(*STEPS[:2], Step("three", Tall(), ("b", "a"), ("y",)))),
        program(tensors=(*TENSORS, image("z")), steps=(*STEPS, Step("z", Tall(), ("a",), ("z",)))),
        program(tensors=tuple(replace(t, shape=(2, 2, 6, 2)) if t.name == "a" else t
                              for t in TENSORS)),
    ],
    ids=["an output", "viewed", "read with another", "read elsewhere", "two images"],
)  # fmt: skip
def test_what_else_is_needed_does_not_go_into_strips(given):
    assert fuse(given, 0, 3, 4) is None


def test_what_is_not_in_strips_stays_as_it_is():
    given = program()
    assert unfold(given) is given


def test_each_row_of_each_strip_is_steps_of_its_own():
    found = unfold(fuse(program(), 0, 3, 4))
    assert [step.name for step in found.steps[:6]] == [
        f"{name}/columns {columns}/rows {rows}"
        for columns in ("0 to 4", "4 to 6")
        for name, rows in (("one", "0 to 2"), ("two", "0"), ("three", "0"))
    ]
    assert len(found.steps) == 4 * 2 * 3


def test_a_strip_reads_and_writes_parts_of_rows():
    found = unfold(fuse(program(), 0, 3, 4))
    one, _, three = found.steps[3:6]
    *read, weights, nothing = one.inputs
    assert (weights, nothing) == ("w", "")
    assert [found.tensors[name].alias for name in read] == [Alias("x", 8), Alias("x", 20)]
    assert found.tensors[three.outputs[0]].alias == Alias("y", 8)
    assert found.tensors[three.outputs[0]].shape == (1, 1, 2, 2)


def test_rows_that_windows_share_are_made_for_each():
    found = unfold(fuse(program(), 0, 3, 6))
    bands = [step.operator for step in found.steps]
    assert all(isinstance(band, Band) for band in bands)
    made = [(band.first, band.rows) for band in bands if band.model_step == "one"]
    assert made == [(0, 2), (2, 3), (5, 3), (8, 2)]
    whole = program()
    work = sum(step.operator.multiply_adds(whole.operands(step)) for step in whole.steps)
    # 10 rows instead of 4, of 12 elements.
    assert sum(band.work for band in bands) == work + 6 * 12


def test_bands_know_the_tensors_and_steps_of_the_model():
    for step in unfold(fuse(program(), 0, 3, 4)).steps:
        assert step.operator.model_step in ("one", "two", "three")
        assert step.operator.inputs[0].model_tensor in ("x", "a", "b")
        assert step.operator.outputs[0].model_tensor in ("a", "b", "y")


def test_once_the_time_is_up_strips_are_not_unfolded():
    fused = fuse(program(), 0, 2, 2)
    assert fused is not None
    with pytest.raises(SearchStoppedError):
        unfold(fused, lambda: True)
