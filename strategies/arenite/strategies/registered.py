"""Strategies and policies that installed packages register by entry points."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar, Generic, Protocol, TypeVar

from arenite.planner import Policy, Strategy
from arenite.planner.errors import PluginError, UnknownStrategyError

logger = logging.getLogger(__name__)


class _Named(Protocol):
    name: ClassVar[str]


Entry = TypeVar("Entry", bound=_Named)


@dataclass(frozen=True, slots=True)
class Register(Generic[Entry]):
    """One kind of entry, ours and others'.

    Attributes:
        kind: Kind of the entries, for errors.
        group: The group of entry points under which packages register theirs.
        taken: Returns an object that is such an entry, else None.
    """

    kind: str
    group: str
    taken: Callable[[object], Entry | None]

    def others(self) -> tuple[tuple[str, Entry], ...]:
        """Return the entries that installed packages register, each with its origin.

        An entry that cannot be used is left out, with a warning in the log.
        """
        return tuple(self._usable())

    def _usable(self) -> Iterator[tuple[str, Entry]]:
        for entry_point in entry_points(group=self.group):
            try:
                yield _origin(entry_point), self.loaded(entry_point)
            except PluginError as error:
                logger.warning("%s; it is left out", error)

    def loaded(self, entry_point: EntryPoint) -> Entry:
        """Return the entry of an entry point, which names an entry or a class of entries.

        Raises:
            PluginError: It cannot be imported, or is no such entry.
        """
        about = f"{self.kind} {entry_point.name!r} of {_origin(entry_point)}"
        try:
            named = entry_point.load()
            entry = self.taken(named() if isinstance(named, type) else named)
        except (Exception, SystemExit) as error:  # another package's code
            raise PluginError(f"{about} cannot be imported: {error!r}") from error
        if entry is None:
            raise PluginError(f"{about} is not a {self.kind}")
        return entry

    def by_name(
        self, ours: Iterable[Entry], others: Iterable[tuple[str, Entry]]
    ) -> dict[str, Entry]:
        """Return all entries by name, ours first.

        Raises:
            PluginError: Two have the same name.
        """
        found: dict[str, Entry] = {}
        for origin, entry in (*(("arenite", each) for each in ours), *others):
            if entry.name in found:
                raise PluginError(f"{origin}: a {self.kind} named {entry.name!r} exists already")
            found[entry.name] = entry
        return found

    def find(self, name: str, known: dict[str, Entry]) -> Entry:
        """Return the entry of that name.

        Raises:
            UnknownStrategyError: There is none; the error lists the known.
        """
        if name not in known:
            raise UnknownStrategyError(name, tuple(known), self.kind)
        return known[name]


def _origin(entry_point: EntryPoint) -> str:
    package = entry_point.dist
    return entry_point.value if package is None else f"{package.name} ({entry_point.value})"


def _strategy(named: object) -> Strategy | None:
    return named if isinstance(named, Strategy) else None


def _policy(named: object) -> Policy | None:
    return named if isinstance(named, Policy) else None


STRATEGY_REGISTER = Register("strategy", "arenite.strategies", _strategy)
POLICY_REGISTER = Register("policy", "arenite.policies", _policy)


@cache
def other_strategies() -> tuple[tuple[str, Strategy], ...]:
    """Return the strategies that installed packages register, each with its origin."""
    return STRATEGY_REGISTER.others()
