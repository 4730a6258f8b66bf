"""Strategies and policies that installed packages register by entry points."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar, Generic, Protocol, TypeVar

from arenite.planner import Policy, Strategy
from arenite.planner.errors import UnknownStrategyError


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

        Raises:
            ValueError: A registered object is no such entry.
        """
        found = entry_points(group=self.group)
        return tuple((entry_point.value, self.loaded(entry_point)) for entry_point in found)

    def loaded(self, entry_point: EntryPoint) -> Entry:
        """Return the entry of an entry point, which names an entry or a class of entries.

        Raises:
            ValueError: It is no such entry.
        """
        named = entry_point.load()
        entry = self.taken(named() if isinstance(named, type) else named)
        if entry is None:
            raise ValueError(f"entry point {entry_point.value!r} is not a {self.kind}")
        return entry

    def by_name(
        self, ours: Iterable[Entry], others: Iterable[tuple[str, Entry]]
    ) -> dict[str, Entry]:
        """Return all entries by name, ours first.

        Raises:
            ValueError: Two have the same name.
        """
        found: dict[str, Entry] = {}
        for origin, entry in (*(("arenite", each) for each in ours), *others):
            if entry.name in found:
                raise ValueError(f"{origin}: a {self.kind} named {entry.name!r} exists already")
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


def _strategy(named: object) -> Strategy | None:
    return named if isinstance(named, Strategy) else None


def _policy(named: object) -> Policy | None:
    return named if isinstance(named, Policy) else None


STRATEGY_REGISTER = Register("strategy", "arenite.strategies", _strategy)
POLICY_REGISTER = Register("policy", "arenite.policies", _policy)


@cache
def other_strategies() -> tuple[tuple[str, Strategy], ...]:
    """Return the strategies that installed packages register, each with its origin.

    Raises:
        ValueError: A registered object is not a strategy.
    """
    return STRATEGY_REGISTER.others()
