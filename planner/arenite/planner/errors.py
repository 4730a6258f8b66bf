"""Every deliberate failure of Arenite.

::

    AreniteError
    ├── FileError                   a file cannot be used; subclasses say what for
    ├── ModelError                  the model cannot be planned
    │   ├── ModelFormatError        the file is not what it claims to be
    │   ├── UnsupportedModelError   valid, but uses something we cannot size
    │   ├── UnboundDimensionError   a free dimension was not given a value
    │   ├── BindingError            a dimension or shape was given that the model cannot take
    │   └── OrderError              an order that the operators cannot run in
    ├── MissingDependencyError      an optional package is needed; names the extra
    ├── PlanError                   no plan, or a wrong one
    │   ├── InfeasibleError         proved: nothing fits the capacity
    │   ├── SearchLimitError        not known yet: time or nodes ran out
    │   ├── InvalidPlanError        the plan breaks a rule (one subclass a rule)
    │   ├── UnsupportedProblemError the strategy does not handle such a problem
    │   └── UnknownStrategyError    no strategy of that name; lists the known
    └── PlanFileError               the plan file is not to be trusted (one subclass a reason)

The rules of a plan are in `arenite.planner.verify`, the reasons against a file in
`arenite.planner.planfile`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar


class AreniteError(Exception):
    """Base of every error Arenite raises on purpose; its text is one complete sentence."""


class FileError(AreniteError):
    """A file cannot be used.

    Attributes:
        path: The file.
        reason: Why not.
    """

    remedy: ClassVar[str] = ""
    """What to do about it, after the reason."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}{self.remedy}")
        self.path = path
        self.reason = reason


class ModelError(AreniteError):
    """The model cannot be planned."""


class ModelFormatError(ModelError):
    """The file is damaged or is not of the format its name claims.

    Attributes:
        path: The file.
        reason: What is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnsupportedModelError(ModelError):
    """The model is valid but uses something whose memory cannot be stated.

    Attributes:
        path: The file.
        culprit: The tensor or operator.
        reason: Why it has no place in an arena.
    """

    def __init__(self, path: str, culprit: str, reason: str) -> None:
        super().__init__(f"{path}: {culprit!r}: {reason}")
        self.path = path
        self.culprit = culprit
        self.reason = reason


class UnboundDimensionError(ModelError):
    """Free dimensions were not bound.

    Attributes:
        path: The file.
        dimensions: Their names, sorted.
    """

    def __init__(self, path: str, dimensions: Sequence[str], hint: str) -> None:
        names = ", ".join(map(repr, dimensions))
        super().__init__(f"{path}: free dimensions {names}; {hint}")
        self.path = path
        self.dimensions = tuple(dimensions)


class BindingError(ModelError):
    """A dimension or shape was given that the model does not have or cannot take.

    Attributes:
        path: The file.
        name: The dimension or input.
        reason: Why it cannot be bound so.
    """

    def __init__(self, path: str, name: str, reason: str) -> None:
        super().__init__(f"{path}: {name!r} {reason}")
        self.path = path
        self.name = name
        self.reason = reason


class OrderError(ModelError):
    """An order is not one that the operators can run in."""


class MissingDependencyError(AreniteError):
    """An optional package is needed.

    Attributes:
        package: What could not be imported.
        extra: The extra of the distribution that brings it.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: "
            f"pip install 'arenite[{extra}]'"
        )
        self.package = package
        self.extra = extra


class PlanError(AreniteError):
    """There is no plan, or it is wrong."""


class InfeasibleError(PlanError):
    """Nothing fits the capacity, and that is proved.

    Attributes:
        capacity: Bytes available.
        lower_bound: Bytes any plan needs.
    """

    def __init__(self, capacity: int, lower_bound: int) -> None:
        super().__init__(
            f"no plan fits {capacity} B: every plan needs at least {lower_bound} B; "
            "raise the capacity or rewrite the graph to need less"
        )
        self.capacity = capacity
        self.lower_bound = lower_bound


class SearchLimitError(PlanError):
    """The search stopped before it knew; a plan may still exist.

    Attributes:
        capacity: Bytes asked for, None when the search was for the lowest plan.
    """

    def __init__(self, reason: str, capacity: int | None = None) -> None:
        super().__init__(reason)
        self.capacity = capacity


class InvalidPlanError(PlanError):
    """The plan breaks a rule.

    Attributes:
        records: Names of the records involved.
    """

    def __init__(self, message: str, records: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.records = tuple(records)


class UnsupportedProblemError(PlanError):
    """The strategy does not handle such a problem.

    Attributes:
        strategy: Its name.
        reason: What it cannot handle.
    """

    def __init__(self, strategy: str, reason: str) -> None:
        super().__init__(f"strategy {strategy!r} {reason}; try --strategy best")
        self.strategy = strategy
        self.reason = reason


class UnknownStrategyError(PlanError):
    """No strategy has that name.

    Attributes:
        name: The name asked for.
        known: The names there are.
    """

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"unknown strategy {name!r}; known: {', '.join(known)}")
        self.name = name
        self.known = tuple(known)


class PlanFileError(AreniteError):
    """The plan file is not to be trusted.

    Attributes:
        path: The file.
        reason: What is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
