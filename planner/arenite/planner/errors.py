"""Every deliberate failure of Arenite.

::

    AreniteError
    ├── FileError                       a file or its contents cannot be used
    │   ├── ModelError                  the model cannot be planned
    │   │   ├── ModelFormatError        the file is not of the format of its name
    │   │   ├── UnsupportedModelError   valid, but uses something we cannot size
    │   │   ├── UnboundDimensionError   a free dimension was not given a value
    │   │   ├── UnknownConstantError    a constant is needed whose elements are not known
    │   │   │   └── MissingDataError    they lie in a file that is missing or not as stated
    │   │   ├── BindingError            a dimension or shape was given that the model cannot take
    │   │   ├── SizeError               a range of sizes, or what is not known for all of them
    │   │   └── OrderError              an order that the operators cannot run in
    │   ├── PlanFileError               the plan file is not to be trusted (one subclass a reason)
    │   └── OutputError                 a file cannot be written
    ├── MissingDependencyError          an optional package is needed; names the extra
    └── PlanError                       no plan, or a wrong one
        ├── InfeasibleError             proved: nothing fits the capacity
        ├── SearchLimitError            not known yet: time or nodes ran out
        ├── SizeLimitError              sizes beyond the range of the native searches
        ├── InvalidPlanError            the plan breaks a rule (one subclass a rule)
        ├── InvalidTimelineError        a simulated run breaks a rule (one subclass a rule)
        ├── DifferentValuesError        a rewritten program computes other values
        ├── BudgetError                 nothing that was found meets a budget
        │   └── UnmetBudgetError        a policy does not get as low
        ├── UnsupportedProgramError     the policy does not handle such a program
        ├── UnsupportedProblemError     the strategy does not handle such a problem
        ├── FailedStrategyError         the strategy raised an error that is none of ours
        ├── PluginError                 a package registers what cannot be used
        └── UnknownStrategyError        no strategy of that name; lists the known

The rules of a plan are in `arenite.planner.placement.verification`, those of a simulated run in
`arenite.planner.timing.check`, the reasons against a file in
`arenite.planner.planfile`.

Code that looks at the contents of a file says what is wrong with them. The file's name is
added once, by whoever opens it: see `about_file`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar


class AreniteError(Exception):
    """Base of every error Arenite raises on purpose; its text is one complete sentence."""


class FileError(AreniteError):
    """A file or its contents cannot be used.

    Attributes:
        reason: Why not.
        path: The file; None if there is none, or until `about_file` adds it.
    """

    remedy: ClassVar[str] = ""
    """The remedy, after the reason."""

    def __init__(self, reason: str, *, path: Path | str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        message = f"{self.reason}{self.remedy}"
        return message if self.path is None else f"{self.path}: {message}"


@contextmanager
def about_file(path: Path | str) -> Iterator[None]:
    """Add the file to each `FileError` raised inside that does not name one yet.

    Code that parses a file's contents need not know the file's name::

        with about_file(path):
            return parse(path.read_bytes())
    """
    try:
        yield
    except FileError as error:
        if error.path is None:
            error.path = path
        raise


@contextmanager
def named_instead(made: Path, origin: Path) -> Iterator[None]:
    """Make each `FileError` about a derived file name the file that the user gave.

    Args:
        made: The derived file, in a temporary folder.
        origin: The user's file that it was made from.
    """
    try:
        yield
    except FileError as error:
        if error.path is not None and Path(error.path) == made:
            error.path = origin
        raise


class ModelError(FileError):
    """The model cannot be planned."""


class ModelFormatError(ModelError):
    """The file is damaged or is not of the format its name claims."""


class UnsupportedModelError(ModelError):
    """The model is valid but uses something whose memory cannot be stated.

    Attributes:
        culprit: The tensor or operator.
    """

    def __init__(self, culprit: str, reason: str, *, path: Path | str | None = None) -> None:
        super().__init__(f"{culprit!r}: {reason}", path=path)
        self.culprit = culprit


class UnboundDimensionError(ModelError):
    """Free dimensions were not bound.

    Attributes:
        dimensions: Their names, sorted.
    """

    def __init__(
        self, dimensions: Sequence[str], hint: str, *, path: Path | str | None = None
    ) -> None:
        names = ", ".join(map(repr, dimensions))
        super().__init__(f"free dimensions {names}; {hint}", path=path)
        self.dimensions = tuple(dimensions)


class UnknownConstantError(ModelError, KeyError):
    """A constant is needed whose elements are not known; to a mapping, one it does not have."""

    def __init__(self, tensor: str, reason: str, *, path: Path | str | None = None) -> None:
        super().__init__(f"constant {tensor!r}: {reason}", path=path)
        self.tensor = tensor


class MissingDataError(UnknownConstantError):
    """The file beside the model that holds a constant is missing, or not as the model states."""

    remedy = "; --target generic plans the graph as written without it"


class BindingError(ModelError):
    """A dimension or shape was given that the model does not have or cannot take.

    Attributes:
        name: The dimension or input.
    """

    def __init__(self, name: str, reason: str, *, path: Path | str | None = None) -> None:
        super().__init__(f"{name!r} {reason}", path=path)
        self.name = name


class SizeError(ModelError):
    """A range of sizes is not valid, or something is not known for all sizes of it."""


class OrderError(ModelError):
    """An order is not one that the operators can run in."""


class PlanFileError(FileError):
    """The plan file is not to be trusted."""


class OutputError(FileError):
    """A file cannot be written."""


class MissingDependencyError(AreniteError):
    """An optional package is needed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: "
            f"pip install 'arenite[{extra}]'"
        )
        self.package = package
        self.extra = extra


@contextmanager
def needing(package: str, extra: str, purpose: str) -> Iterator[None]:
    """Turn the failure to import an optional package into an error that names its extra.

    Args:
        purpose: Its use, the subject of a sentence.

    Raises:
        MissingDependencyError: The package is absent.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingDependencyError(package, extra, purpose) from error


class PlanError(AreniteError):
    """There is no plan, or it is wrong."""


class InfeasibleError(PlanError):
    """Nothing fits the capacity, and that is proved.

    Attributes:
        capacity: Bytes available.
        lower_bound: Bytes any plan needs.
        memory: Name of the memory that is too small; empty where there is only one.
    """

    def __init__(self, capacity: int, lower_bound: int, memory: str = "") -> None:
        where = f" in memory {memory!r}" if memory else ""
        super().__init__(
            f"no plan fits {capacity:,} B{where}: every plan needs at least {lower_bound:,} B; "
            "raise the capacity, or let `arenite fit` change how the model runs"
        )
        self.capacity = capacity
        self.lower_bound = lower_bound
        self.memory = memory


class SearchLimitError(PlanError):
    """The search stopped before it could decide; a plan may still exist.

    Attributes:
        capacity: Bytes asked for, None when the search was for the lowest plan.
    """

    def __init__(self, reason: str, capacity: int | None = None) -> None:
        super().__init__(reason)
        self.capacity = capacity


class SizeLimitError(PlanError):
    """Sizes or steps are beyond the range of the native searches.

    Attributes:
        culprit: Name of the largest tensor or record.
        size: Its bytes, or the step at which it ends.
        limit: Their sum must be below it.
    """

    def __init__(self, what: str, culprit: str, size: int, limit: int) -> None:
        super().__init__(f"{what}; supported: less than 2^{limit.bit_length() - 1}")
        self.culprit = culprit
        self.size = size
        self.limit = limit


class InvalidPlanError(PlanError):
    """The plan breaks a rule.

    Attributes:
        records: Names of the records involved.
    """

    def __init__(self, message: str, records: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.records = tuple(records)


class InvalidTimelineError(PlanError):
    """A simulated run breaks a rule.

    Attributes:
        step: Name of the step involved; empty if there is none.
    """

    def __init__(self, message: str, step: str = "") -> None:
        super().__init__(message)
        self.step = step


class DifferentValuesError(PlanError):
    """A rewritten program computes other values than before.

    Attributes:
        tensor: Name of the output or state.
    """

    def __init__(self, tensor: str, reason: str) -> None:
        super().__init__(f"{tensor!r} {reason}")
        self.tensor = tensor


class BudgetError(PlanError):
    """Nothing that was found meets a budget.

    Attributes:
        budget: Bytes asked for.
        least: The fewest bytes that were reached.
    """

    def __init__(self, reason: str, budget: int, least: int) -> None:
        super().__init__(reason)
        self.budget = budget
        self.least = least


class UnmetBudgetError(BudgetError):
    """A policy does not meet the budget; another one may."""

    def __init__(self, policy: str, budget: int, least: int, reason: str = "") -> None:
        why = f": {reason}" if reason else ""
        super().__init__(
            f"policy {policy!r} reaches {least:,} B, the budget is {budget:,} B{why}; "
            "raise the budget or try another policy",
            budget,
            least,
        )
        self.policy = policy


class UnsupportedProgramError(PlanError):
    """The policy does not handle such a program."""

    def __init__(self, policy: str, reason: str) -> None:
        super().__init__(f"policy {policy!r} {reason}")
        self.policy = policy
        self.reason = reason


class UnsupportedProblemError(PlanError):
    """The strategy does not handle such a problem."""

    def __init__(self, strategy: str, reason: str) -> None:
        super().__init__(f"strategy {strategy!r} {reason}; try --strategy best")
        self.strategy = strategy
        self.reason = reason


class FailedStrategyError(PlanError):
    """The strategy raised an unexpected error, as one of another package may."""

    def __init__(self, strategy: str, reason: str) -> None:
        super().__init__(f"strategy {strategy!r} failed: {reason}")
        self.strategy = strategy


class PluginError(PlanError):
    """A strategy or policy that another package registers cannot be used; names the package."""


class UnknownStrategyError(PlanError):
    """No strategy, or policy, has that name."""

    def __init__(self, name: str, known: Sequence[str], kind: str = "strategy") -> None:
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(known)}")
        self.name = name
        self.known = tuple(known)
