import pytest

from arenite.planner.operators.bands import Band
from arenite.planner.operators.moving import Fetch, Spill, Wait
from arenite.planner.programs.costs import LEAST, PRESETS, Budget, Costs, Link
from arenite.planner.programs.program import Step
from support.training_programs import Mix, training_program


@pytest.mark.parametrize(
    ("text", "out", "back"),
    [("12GB/s", 12e9, 12e9), ("24.5MB/s:45.5MB/s", 24.5e6, 45.5e6), ("100", 100, 100)],
)
def test_a_link_is_written_as_a_speed_or_two(text: str, out: float, back: float) -> None:
    assert Link.parse(text) == Link(out, back)


@pytest.mark.parametrize("text", ["", "fast", "0GB/s", "1GB/s:2GB/s:3GB/s", "1GB/s:"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="speed"):
        Link.parse(text)


def test_one_lane_serves_a_link_that_does_one_thing_at_a_time() -> None:
    assert len(set(Link(1, 1).lanes)) == 2
    assert len(set(Link(1, 1, duplex=False).lanes)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Link(0, 1),
        lambda: Link(1, 1, -1),
        lambda: Costs(0, 1, Link(1, 1)),
        lambda: Costs(1, 1, Link(1, 1), {"Conv": 0}),
        lambda: Costs(1, 1, Link(1, 1), step_s=-1),
    ],
)
def test_speeds_are_above_zero(wrong) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        wrong()


def test_a_step_takes_the_longer_of_computing_and_memory() -> None:
    program = training_program(0)
    step = program.steps[0]
    touched = step.operator.bytes_touched(program.operands(step))
    quick, slow = (
        Step("a", Mix(1, 10), step.inputs, ("loss",)),
        Step("b", Mix(1, 10**9), step.inputs, ("loss",)),
    )
    costs = Costs(1e6, 1e3, Link(10, 20, 0.5), {"Mix": 1e8}, step_s=0.25)
    assert costs.seconds(program, slow) == pytest.approx(0.25 + 10)
    memory = quick.operator.bytes_touched(program.operands(quick))
    assert costs.seconds(program, quick) == pytest.approx(0.25 + memory / 1e3)
    assert touched > 0


def test_a_move_takes_the_time_of_its_link_and_a_wait_none() -> None:
    program = training_program(0)
    size = program.tensors["x"].size
    costs = Costs(1, 1, Link(10, 20, 0.5))
    assert costs.seconds(program, Step("s", Spill(), ("x",), ("x",))) == 0.5 + size / 10
    assert costs.seconds(program, Step("f", Fetch(), ("x",), ("x",))) == 0.5 + size / 20
    assert costs.seconds(program, Step("w", Wait(), ("x",), ())) == 0


def test_stated_machines_are_named() -> None:
    assert PRESETS["sd"].link == Link.parse("24.5MB/s:45.5MB/s")


def test_a_part_of_an_operator_is_as_quick_as_the_operator_whatever_it_is_called() -> None:
    whole = Mix(1, 10)
    band = Band(whole, "a", 0, 1, (), ())
    costs = Costs(1e6, 1e3, Link(1, 1), {"Mix": 1e8, whole.label + "!": 1})
    assert band.computes_as is whole.computes_as is Mix
    assert costs.speed_of(band) == costs.speed_of(whole) == 1e8
    assert costs.speed_of(Wait()) == 1e6


@pytest.mark.parametrize(("text", "of_1000"), [("75%", 750), ("4KiB", 4096), ("12.5%", 125)])
def test_a_budget_is_a_size_or_a_part_of_the_peak(text: str, of_1000: int) -> None:
    budget = Budget.parse(text)
    assert budget.bytes_of(1000) == of_1000
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize("text", ["0%", "-3%", "x%", "0", "many"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        Budget.parse(text)


def test_the_least_has_no_number() -> None:
    assert LEAST.bytes_of(1000) is None
    assert str(LEAST) == "least"


def test_a_budget_beyond_what_can_be_addressed_is_said_to_be_too_large() -> None:
    with pytest.raises(ValueError, match=r"is above 2\^63 - 1"):
        Budget.parse("99999999999999999999999")
    with pytest.raises(ValueError, match="is not above 0"):
        Budget.parse("0")
