"""A program of a tensor that steps write and read in parts, and never as a whole."""

from arenite.planner.programs.program import Program, Step
from arenite.planner.tensors import Alias, DType, Tensor
from support.training_programs import Mix


def program_in_parts(first: Mix, last: Mix, carried: Mix) -> Program:
    """Return a program that makes halves of a tensor, one in parts, and reads its middle.

    Args:
        first: Makes the first part of the first half.
        last: Makes the last half.
        carried: Makes what nothing reads until the end.
    """

    def tensor(name: str, size: int, alias: Alias | None = None) -> Tensor:
        return Tensor(name, DType.UINT8, (size,), alias=alias)

    tensors = [
        tensor("x", 64), tensor("carried", 64), tensor("whole", 128), tensor("other", 64),
        tensor("low", 64, Alias("whole", 0)), tensor("high", 64, Alias("whole", 64)),
        tensor("lowest", 32, Alias("low", 0)), tensor("next", 32, Alias("low", 32)),
        tensor("middle", 64, Alias("whole", 32)), tensor("y", 64),
    ]  # fmt: skip
    steps = [
        Step("carry", carried, ("x",), ("carried",)),
        Step("first", first, ("x",), ("lowest",)),
        Step("then", Mix(6), ("x",), ("next",)),
        Step("last", last, ("x",), ("high",)),
        Step("look", Mix(7), ("middle",), ("other",)),
        Step("end", Mix(8), ("other", "carried"), ("y",)),
    ]
    return Program.of("parts", tensors, steps, ["x"], ["y"])
