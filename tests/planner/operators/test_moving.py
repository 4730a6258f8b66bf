"""Steps that move tensors, and the lanes that they run on."""

import pytest

from arenite.planner.errors import ModelError
from arenite.planner.operators.moving import Fetch, Spill, Wait
from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.tensors import DType, Memory, Tensor, TensorKind

OUT, BACK = "link out", "link back"


def spilling(*steps: Step) -> Program:
    tensors = [
        Tensor("in", DType.UINT8, (16,), TensorKind.INPUT),
        Tensor("x", DType.UINT8, (64,)),
        Tensor("copy", DType.UINT8, (64,), memory="far"),
        Tensor("x again", DType.UINT8, (64,)),
        Tensor("out", DType.UINT8, (16,), TensorKind.OUTPUT),
    ]
    return Program.of(
        "spilling", tensors, steps, ["in"], ["out"], memories=(Memory(), Memory("far"))
    )


MAKE = Step("make", Operator(), ("in",), ("x",))
SPILL = Step("spill", Spill(), ("x",), ("copy",), OUT)
GONE = Step("gone", Wait(), ("x", "copy"), ())
FETCH = Step("fetch", Fetch(), ("copy",), ("x again",), BACK)
THERE = Step("there", Wait(), ("copy", "x again"), ())
USE = Step("use", Operator(), ("x again",), ("out",))


def test_a_spilled_tensor_is_free_between_its_waits() -> None:
    records = liveness(spilling(MAKE, SPILL, GONE, FETCH, THERE, USE)).records
    lifetimes = {record.name: (record.start, record.end) for record in records}
    assert lifetimes["x"] == (0, 3)
    assert lifetimes["x again"] == (3, 6)
    assert lifetimes["copy"] == (1, 5)


@pytest.mark.parametrize(
    ("steps", "tensor"),
    [
        ((MAKE, SPILL, FETCH, THERE, USE), "x"),
        ((MAKE, SPILL, GONE, FETCH, USE), "copy"),
        ((MAKE, SPILL, Step("gone", Wait(), ("x",), ()), FETCH, THERE, USE), "x"),
    ],
    ids=["nothing waits for the spill", "the copy may be overwritten", "no wait for the result"],
)
def test_what_another_lane_may_still_touch_must_be_waited_for(
    steps: tuple[Step, ...], tensor: str
) -> None:
    with pytest.raises(ModelError, match=f"uses '{tensor}' after its lifetime"):
        spilling(*steps)


def test_bytes_cross_the_link_each_way() -> None:
    far = Tensor("far", DType.UINT8, (100,))
    operands = Operands((far,), (far,))
    assert Spill().bytes_moved(operands) == (100, 0)
    assert Fetch().bytes_moved(operands) == (0, 100)
    assert Spill(30).bytes_moved(operands) == (30, 0)
    assert Wait().bytes_moved(operands) == (0, 0)
    assert Wait().bytes_touched(operands) == 0
    assert Wait() == Wait()
