"""Models of a system in bands of rows, so that all of them fit a budget.

A model may take what the others leave while it runs: they hold the outputs that they hand on or
keep, and their states. Models that run at once share what there is in proportion to what they
take whole.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from arenite.planner import Derivation, Plan, Program, UsageRecord
from arenite.planner.placement import load_spans
from arenite.planner.programs import Section, SectionKind
from arenite.strategies import BandsLimitError, StripsSearch

_MOST_TRIES = 8
"""Joint plans that are made; models that are too large in one get less for the next."""


@dataclass(frozen=True, slots=True)
class PlacedModels:
    """All models of a system, and where their records lie."""

    derivation: Derivation
    plan: Plan


Join: TypeAlias = Callable[[Mapping[str, Program]], PlacedModels]
"""Joins the programs of all models, none of their storage shared, and places their records."""


def in_bands(searches: Mapping[str, StripsSearch], join: Join, budget: int) -> PlacedModels:
    """Return a system in an arena of at most so many bytes, each model as quick as it can be.

    Args:
        searches: Of the bands of each model, by name.
        join: Joins and places them.
        budget: Bytes.

    Raises:
        BandsLimitError: None was found.
    """
    programs = {name: each.whole.unshared for name, each in searches.items()}
    heights = {name: each.whole.height for name, each in searches.items()}
    whole = found = join(programs)
    least: dict[str, int] = {}  # of models that run at once and did not get as low as their share
    aims = dict.fromkeys(programs, budget)
    for number in range(_MOST_TRIES):
        shares = _Shares(whole.derivation, heights, least)
        made = dict(programs)
        refused = None
        for name, share in shares.of(aims).items():
            if heights[name] > share:
                try:
                    made[name] = searches[name].within(max(share, 1)).unshared
                except BandsLimitError as error:
                    refused = error
                    if name in least or not shares.is_at_once(name):
                        reached = budget - share + error.least
                        raise BandsLimitError(
                            budget, reached, error.binding, is_stopped=error.is_stopped
                        ) from error
                    least[name] = error.least
        if refused is None:
            found = join(made)
            if found.plan.height <= budget:
                return found
            excess = _excess(found, budget)
            aims = {name: aim - excess[name] * 2**number for name, aim in aims.items()}
    raise BandsLimitError(budget, found.plan.height, None)


def _steps_of(program: Program) -> dict[str, range]:
    """Return the steps of each model."""
    assert program.system is not None
    steps: dict[str, range] = {}
    begun = 0
    for stage in program.system.stages:
        steps[stage.name] = range(begun, begun + stage.num_steps)
        begun += stage.num_steps
    return steps


def _excess(found: PlacedModels, budget: int) -> dict[str, int]:
    """Return how far each model is above a budget; all as far as the plan, if its gaps are."""
    records = found.derivation.problem.records
    steps = _steps_of(found.derivation.program)
    above = {name: max(0, _load(records, its) - budget) for name, its in steps.items()}
    return above if any(above.values()) else dict.fromkeys(steps, found.plan.height - budget)


def _load(records: Iterable[UsageRecord], steps: range) -> int:
    """Return the largest load of some records at some steps."""
    spans = load_spans(records)
    return max(
        (span.load for span in spans if span.start < steps.stop and steps.start < span.end),
        default=0,
    )


class _Shares:
    """What each model may take of a budget.

    Args:
        derivation: The system, every model whole.
        heights: Bytes of each model alone.
        least: Bytes below which a model cannot be, of some models that run at once.
    """

    def __init__(
        self, derivation: Derivation, heights: Mapping[str, int], least: Mapping[str, int]
    ) -> None:
        system = derivation.program.system
        assert system is not None
        self._heights, self._least = heights, least
        self._steps = _steps_of(derivation.program)
        self._sections = [
            each for each in system.schedule.sections() if each.kind is SectionKind.AT_ONCE
        ]
        # Names of tensors begin with that of their model; working memory has no name, and is
        # live in one step only.
        self._owned = [
            (record, frozenset(name.partition("/")[0] for name in record.tensors))
            for record in derivation.problem.records
            if record.tensors
        ]

    def is_at_once(self, name: str) -> bool:
        """Tell whether a model runs at once with others."""
        return any(name in section.stages() for section in self._sections)

    def of(self, aims: Mapping[str, int]) -> dict[str, int]:
        """Return the bytes that each model may take, of those of the system while it runs."""
        everything = frozenset(self._steps)
        shares = {
            name: aims[name] - self._held(steps, everything - {name})
            for name, steps in self._steps.items()
        }
        for section in self._sections:
            shares |= self._shared(section, min(aims[name] for name in section.stages()))
        return shares

    def _shared(self, section: Section, budget: int) -> dict[str, int]:
        """Return the bytes of models that run at once; those of a part run one after another."""
        parts = [
            frozenset((part,) if isinstance(part, str) else part.stages())
            for part in section.parts
        ]
        inside = frozenset(section.stages())
        steps = [step for name in inside for step in self._steps[name]]
        others = self._held(range(min(steps), max(steps) + 1), frozenset(self._steps) - inside)
        least = [max(self._least.get(name, 0) for name in part) for part in parts]
        free = max(0, budget - others - sum(least))
        taken = [
            0 if fixed else max(self._heights[name] for name in part)
            for part, fixed in zip(parts, least, strict=True)
        ]
        return {
            name: (fixed or free * size // sum(taken))
            - self._held(self._steps[name], part - {name})
            for part, fixed, size in zip(parts, least, taken, strict=True)
            for name in part
        }

    def _held(self, steps: range, owners: frozenset[str]) -> int:
        """Return the most bytes at some steps that belong to some models, and to no other."""
        return _load((record for record, its in self._owned if its <= owners), steps)
