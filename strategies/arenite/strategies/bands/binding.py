"""The binding step of a program in bands: the step of the highest load, and its live tensors."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from arenite.planner import Candidate, Program, TensorKind, diagnose
from arenite.planner.errors import UnmetBudgetError
from arenite.planner.operators import Band

_NAMED = 3
"""Tensors that are named."""
_WORDS = {TensorKind.INPUT: "graph input", TensorKind.STATE: "state"}


@dataclass(frozen=True, slots=True)
class Held:
    """Live bytes of a tensor of the model at a step.

    Attributes:
        size: Bytes that are live; rows that are not yet made or already dead do not count.
        what: Kind of tensor in words; empty for an ordinary one.
    """

    tensor: str
    size: int
    what: str = ""

    @property
    def called(self) -> str:
        """Kind and name; of a fused tensor the first of its names."""
        first, _, more = self.tensor.partition(";")
        name = f"{first!r}" + " and the layers fused with it" * bool(more)
        return f"{self.what} {name}" if self.what else name


@dataclass(frozen=True, slots=True)
class BindingStep:
    """The step at which most bytes are live.

    Attributes:
        step: Its name in the model.
        held: Live tensors, the largest first.
        gaps: Bytes by which the arena is larger, as no placement without gaps was found.
    """

    step: str
    operator: str
    load: int
    held: tuple[Held, ...]
    gaps: int = 0

    def __str__(self) -> str:
        first, *rest = self.held[:_NAMED]
        the = "the " if first.what else ""
        largest = f"{the}{first.called} alone takes {first.size:,} B"
        for each in rest:
            largest += f", {each.called} {each.size:,} B"
        gaps = f", {self.gaps:,} B more are gaps between tensors" if self.gaps else ""
        return f"{self.load:,} B are live at {self.step!r} ({self.operator}){gaps}; {largest}"


class BandsLimitError(UnmetBudgetError):
    """Bands do not meet the budget.

    Attributes:
        binding: Binding step of the lowest program that was found; None if nothing is live in it.
        is_stopped: Whether the search was stopped before its end.
        traded: Lowest height that a policy reaches on programs in bands; None if not lower.
    """

    def __init__(
        self,
        budget: int,
        least: int,
        binding: BindingStep | None,
        *,
        is_stopped: bool = False,
        traded: int | None = None,
    ) -> None:
        super().__init__("bands", budget, least)
        self.binding = binding
        self.is_stopped = is_stopped
        self.traded = traded

    def with_traded(self, reached: int) -> Self:
        """Return the error where a policy on top of bands reaches so many bytes."""
        if reached >= self.least:
            return self
        return type(self)(
            self.budget, self.least, self.binding, is_stopped=self.is_stopped, traded=reached
        )

    def __str__(self) -> str:
        """Return the least height of bands, and the binding step."""
        least = f"the least arena that bands reach is {self.least:,} B"
        remedy = "raise --budget"
        if self.is_stopped:
            least = f"the search was stopped at an arena of {self.least:,} B"
            remedy = "raise --budget or --time-limit"
        why = "" if self.binding is None else f": {self.binding}"
        if self.traded is not None:
            why += f"; with carried tensors spilled or recomputed {self.traded:,} B"
        return f"the budget is {self.budget:,} B, {least}{why}; {remedy}"


def binding_of(found: Candidate) -> BindingStep | None:
    """Return the binding step of a candidate, None if nothing is live in it.

    Cost: O(records + stairs + operands of the steps).
    """
    program = found.program
    most = diagnose(program, found.problem).binding
    if most is None or most.load == 0:
        return None
    owners = owners_of(program)
    sizes: Counter[str] = Counter()
    for record in found.problem.records:
        if record.start <= most.step < record.end:
            live = sum(each.size for each in record.stairs if each.start <= most.step < each.end)
            sizes[_owner(program, record.name, record.tensors, owners, most.step)] += live
    held = sorted(sizes.items(), key=lambda each: (-each[1], each[0]))
    step = program.steps[most.step]
    return BindingStep(
        step.operator.model_step if isinstance(step.operator, Band) else step.name,
        step.operator.label,
        most.load,
        tuple(Held(name, size, _what(program, name)) for name, size in held if size),
        found.height - most.load,
    )


def owners_of(program: Program) -> Mapping[str, str]:
    """Return for each piece of rows, and each sum of rows, the model's tensor that it is of."""
    owners: dict[str, str] = {}
    for step in program.steps:
        band = step.operator
        if isinstance(band, Band):
            result = band.outputs[0]
            if result is not None:  # sums are no pieces
                owners.update(dict.fromkeys((*step.inputs, *step.outputs), result.model_tensor))
            for name, pieces, _ in band.pieces_by_name(step.inputs, step.outputs):
                owners[name] = pieces.model_tensor
    owners.pop("", None)
    return owners


def _owner(
    program: Program, name: str, tensors: Sequence[str], owners: Mapping[str, str], step: int
) -> str:
    for each in (name, *tensors):
        if each in owners:
            return owners[each]
    if tensors:
        return name
    operator = program.steps[step].operator
    return (
        f"scratch of {operator.step if isinstance(operator, Band) else program.steps[step].name}"
    )


def _what(program: Program, name: str) -> str:
    tensor = program.tensors.get(name)
    if name in program.output_tensors:
        return "graph output"
    return "" if tensor is None else _WORDS.get(tensor.kind, "")
