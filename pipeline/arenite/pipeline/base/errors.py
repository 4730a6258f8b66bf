"""Failures of the pipeline."""

from pathlib import Path

from arenite.pipeline.base.text import percent
from arenite.planner import AreniteError
from arenite.planner.errors import BudgetError, FileError, PlanError


class OptionsError(AreniteError):
    """Options exclude each other, or the target decides their values."""


class PlanTargetError(AreniteError):
    """A plan is not one of our runtime's."""

    def __init__(self, path: Path, target: str) -> None:
        super().__init__(
            f"{path}: made for --target {target}; our runtime runs plans for --target "
            f"arenite alone"
        )
        self.path = path
        self.target = target


class UnloadableError(AreniteError):
    """No session runs a program that was just made."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: our runtime does not run it: {reason}; nothing was written")
        self.model = model
        self.reason = reason


class UnplannableError(PlanError):
    """A plan file cannot state a program.

    Attributes:
        reason: What it does.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}, which a plan file cannot state; write a program, -o *.arena")
        self.reason = reason


class SlowdownError(PlanError):
    """The budget can be met, but not at the price.

    Attributes:
        budget: Bytes.
        slowdown: The least that is predicted.
        allowed: The most that is wanted.
    """

    def __init__(self, budget: int, slowdown: float, allowed: float) -> None:
        super().__init__(
            f"a budget of {budget:,} B is predicted to take {percent(slowdown)} more time, "
            f"{percent(allowed)} is allowed; raise --slowdown or --budget"
        )
        self.budget = budget
        self.slowdown = slowdown
        self.allowed = allowed


class OneBudgetError(BudgetError):
    """Arena and weights do not fit one budget, with everything loaded in each run that can be."""

    def __init__(self, budget: int, least: int) -> None:
        super().__init__(
            f"the budget is {budget:,} B; the smallest program that was found takes {least:,} B "
            "of arena and resident weights; raise --budget",
            budget,
            least,
        )


class CostsFileError(FileError):
    """A file of costs is not to be used: damaged, of another version, or with speeds of none."""

    remedy = "; `arenite calibrate` writes one"


class EngineError(AreniteError):
    """An engine does not run the model."""

    def __init__(self, engine: str, reason: str) -> None:
        super().__init__(f"engine {engine!r} does not run the model: {reason}")
        self.engine = engine
