"""A model fitted into a budget, and the frontier of size and time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.text import both, percent
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import SUFFIX
from arenite.planner import Budget, Candidate, Source, planfile
from arenite.planner.programs import CostedMemory
from arenite.runtime import SessionMemory
from arenite.strategies import find_policy

_FALLBACK = "joint"
"""The policy where bands do not meet a budget."""


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A model within a budget of memory.

    Attributes:
        fitting: The model and the ways to run it.
        fit: The way that was chosen.
        budget: Bytes of the arena and the resident weights together; None if no budget covers
            both.
    """

    fitting: Fitting
    fit: Candidate
    budget: int | None = None

    @property
    def height(self) -> int:
        """Bytes of the arena."""
        return self.fit.height

    @property
    def whole_height(self) -> int:
        """Bytes of the arena when every step runs whole."""
        return self.fit.whole.height

    @property
    def resident_weights(self) -> int:
        """Bytes of weights that stay resident; windows for others are in the arena."""
        return self.fitting.resident_weights

    @property
    def loaded_weights(self) -> int:
        """Bytes of weights that each run loads from the file."""
        return self.fitting.loaded_weights

    @property
    def total(self) -> int:
        """Bytes of the arena and of the resident weights."""
        return self.height + self.resident_weights

    @property
    def run_s(self) -> float:
        """Predicted seconds of the shortest run: one token of a decoder, its cache full."""
        return self.fitting.run_s(self.fit)

    @property
    def slowdown(self) -> float:
        """Predicted time over that of the whole program, less 1."""
        return self.fit.slowdown

    @property
    def multiply_adds_ratio(self) -> float:
        """Multiply-adds over those of the whole program."""
        return self.fit.multiply_adds_ratio

    def save(self, path: Path | str) -> SessionMemory:
        """Write the program, `*.arena`, or its plan, `*.json`; return the bytes a session holds.

        Raises:
            UnloadableError: No session runs the program; nothing is written.
            UnplannableError: A plan file cannot state the program.
            OutputError: The file cannot be written.
        """
        path = Path(path)
        if path.suffix == SUFFIX:
            return self.fitting.write(path, self.fit)
        planfile.write(path, self.fitting.plan_file(self.fit))
        return self.fitting.held(self.fit)

    def __str__(self) -> str:
        return (
            f"{self.fitting.lowered.name}: {both(self.height)} of {both(self.whole_height)} "
            f"whole; {percent(max(0.0, self.slowdown))} more time, predicted"
        )

    def _repr_html_(self) -> str:
        from arenite.pipeline.report.notebook import plan_as_html

        source = Source.derived(self.fitting.lowered.name, "", self.fit.derivation)
        return plan_as_html(str(self), source, self.fit.plan)


@dataclass(frozen=True, slots=True)
class FittedFrontier:
    """The time that each size of the arena costs, the whole program first.

    Attributes:
        fitting: The model and the ways to run it.
        fits: Programs that need less and less.
    """

    fitting: Fitting
    fits: tuple[Candidate, ...]

    def __len__(self) -> int:
        return len(self.fits)

    def __getitem__(self, index: int) -> FittedModel:
        """Return a program; the last is the smallest."""
        return FittedModel(self.fitting, self.fits[index])

    def __str__(self) -> str:
        """Return a summary for people: a line a program."""
        return "\n".join(str(self[index]) for index in range(len(self)))

    def _repr_html_(self) -> str:
        from arenite.pipeline.report.frontier import Point
        from arenite.pipeline.report.notebook import frontier_as_html

        return frontier_as_html(self.fitting.lowered.name, [Point.of(fit) for fit in self.fits])


def fit_model(
    fitting: Fitting,
    budget: Budget | None = None,
    *,
    slowdown: float | None = None,
    policy: str | None = None,
    memories: Sequence[CostedMemory] = (),
) -> FittedModel:
    """Fit a model into a budget of memory at the least predicted price in time.

    Args:
        budget: Of the arena; None for the smallest within the slowdown.
        slowdown: Most of the predicted time over that of the whole program, less 1.
        policy: Name of the policy that recomputes and spills in the place of bands; by default
            one does where bands do not meet the budget.
        memories: Memories to spread the program over, in the place of a budget.

    Raises:
        BandsLimitError: Nothing gets as low as the budget.
        UnmetBudgetError: The policy does not.
        SlowdownError: The budget can be met, but takes too long.
        MemoriesLimitError: No program that was found fits the memories.
        OptionsError: Options exclude each other.
    """
    if fitting.has_callers and (memories or policy is not None):
        raise OptionsError("--boundary exclude goes without --memory and --policy")
    if memories:
        if budget is not None or slowdown is not None or policy is not None:
            raise OptionsError("--memory goes without --budget, --slowdown and --policy")
        return FittedModel(fitting, fitting.over(memories))
    if policy is not None and budget is None:
        raise OptionsError("--policy requires --budget")
    if budget is None and slowdown is None:
        raise OptionsError("state a budget, a slowdown or memories")
    named = None if policy is None else find_policy(policy)
    fallback = None if fitting.has_callers else find_policy(_FALLBACK)
    found = fitting.within(budget, slowdown, named, fallback=fallback)
    return FittedModel(fitting, found)
