"""Records with connected lifetimes, as a model of OR-tools' CP-SAT.

This module needs `ortools`; `arenite.strategies.place.cp_sat` imports it when it is used.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from arenite.planner import UsageRecord
from arenite.planner.units import align_up

POLL_S = 0.05
"""How often the caller's thread looks at a running search."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits and parameters of a search.

    Attributes:
        deterministic_s: Limit in the solver's deterministic seconds.
    """

    deterministic_s: float
    seed: int
    workers: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    Attributes:
        offsets: The lowest found; None if none stays under the ceiling.
        lower_bound: Bytes that are proved to be needed; above the ceiling if nothing stays
            under it.
        deterministic_s: Deterministic seconds used.
        stopped: Whether the caller ended it.
    """

    offsets: tuple[int, ...] | None
    lower_bound: int
    deterministic_s: float
    stopped: bool


def solve(
    records: Sequence[UsageRecord],
    hint: Sequence[int],
    floor: int,
    ceiling: int,
    limits: Limits,
    stop: Callable[[tuple[int, ...] | None, int], bool],
) -> SearchResult:
    """Return the lowest offsets found.

    Args:
        records: At least one.
        hint: Offsets to start from.
        floor: Height at which the search may end.
        ceiling: Height that must not be exceeded, at least `floor`.
        limits: When to give up.
        stop: Called with the offsets and the bound so far, in the caller's thread, which is
            where signal handlers run; returns True to end the search.
    """
    model = _Model(records, hint, floor, ceiling)
    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = limits.deterministic_s
    solver.parameters.num_workers = limits.workers
    solver.parameters.random_seed = limits.seed
    solver.parameters.catch_sigint_signal = False
    recorder = _Recorder(model)
    stopped = False
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(solver.solve, model.cp, recorder)
        try:
            while not future.done():
                wait([future], POLL_S)
                if not future.done() and (
                    stopped or stop(recorder.offsets, max(floor, recorder.lower_bound))
                ):
                    stopped = True
                    solver.stop_search()
        finally:
            while not future.done():
                solver.stop_search()
                wait([future], POLL_S)
    status = future.result()
    used_s = solver.response_proto.deterministic_time
    if status == cp_model.INFEASIBLE:
        return SearchResult(None, ceiling + 1, used_s, stopped)
    if recorder.offsets is None:
        return SearchResult(None, floor, used_s, stopped)
    lower_bound = max(floor, model.height_unit * math.ceil(solver.best_objective_bound))
    return SearchResult(recorder.offsets, lower_bound, used_s, stopped)


class _Model:
    """Rectangles fixed in time and free in address, under the lowest possible ceiling.

    Every offset is a multiple of the least alignment, so for the overlap, though not for
    the height, sizes are rounded up to it. Pushed down until each record rests on the
    ground or on another, the records of some lowest plan lie at multiples of `unit`.
    """

    def __init__(
        self, records: Sequence[UsageRecord], hint: Sequence[int], floor: int, ceiling: int
    ) -> None:
        alignment = min(record.alignment for record in records)
        rounded = [align_up(record.size, alignment) for record in records]
        self.unit = math.gcd(*rounded, *(record.offset or 0 for record in records))
        for record in records:
            if record.alignment % self.unit and self.unit % record.alignment:
                self.unit = math.gcd(self.unit, record.alignment)
        self.height_unit = math.gcd(self.unit, *(record.size for record in records))

        self.cp = cp_model.CpModel()
        self.height = self.cp.new_int_var(
            floor // self.height_unit, ceiling // self.height_unit, "height"
        )
        self.cp.minimize(self.height)
        self.offsets = [
            self._offset(record, hinted, ceiling)
            for record, hinted in zip(records, hint, strict=True)
        ]
        for record, offset in zip(records, self.offsets, strict=True):
            top = offset * (self.unit // self.height_unit) + record.size // self.height_unit
            self.cp.add(self.height >= top)

        starts = sorted({record.start for record in records})
        ranks = [
            (bisect_left(starts, record.start), bisect_left(starts, record.end))
            for record in records
        ]
        sizes = [size // self.unit for size in rounded]
        self._forbid_overlap(ranks, sizes, len(starts))
        self._break_symmetry(records, ranks, sizes, hint)

    def _offset(self, record: UsageRecord, hinted: int, ceiling: int) -> cp_model.LinearExprT:
        if record.offset is not None:
            return record.offset // self.unit
        step = max(1, record.alignment // self.unit)
        highest = (ceiling - record.size) // (step * self.unit)
        variable = self.cp.new_int_var(0, highest, f"offset of {record.name}")
        self.cp.add_hint(variable, min(hinted // (step * self.unit), highest))
        return variable * step

    def _forbid_overlap(
        self, ranks: Sequence[tuple[int, int]], sizes: Sequence[int], num_ranks: int
    ) -> None:
        """Let no two records share time and bytes.

        Time is measured in ranks of the distinct starts. The cumulative constraint
        follows from the other one: no address is in use for longer than there is time.
        """
        times = []
        addresses = []
        for offset, (first, last), size in zip(self.offsets, ranks, sizes, strict=True):
            times.append(self.cp.new_fixed_size_interval_var(first, last - first, ""))
            addresses.append(self.cp.new_fixed_size_interval_var(offset, size, ""))
        self.cp.add_no_overlap_2d(times, addresses)
        self.cp.add_cumulative(addresses, [last - first for first, last in ranks], num_ranks)

    def _break_symmetry(
        self,
        records: Sequence[UsageRecord],
        ranks: Sequence[tuple[int, int]],
        sizes: Sequence[int],
        hint: Sequence[int],
    ) -> None:
        """Stack interchangeable records in the order that the hint has them."""
        alike: dict[tuple[tuple[int, int], int, int], list[int]] = {}
        for index in sorted(range(len(records)), key=lambda index: hint[index]):
            record = records[index]
            if record.offset is None:
                key = (ranks[index], record.size, record.alignment)
                alike.setdefault(key, []).append(index)
        for group in alike.values():
            for lower, upper in pairwise(group):
                self.cp.add(self.offsets[lower] + sizes[lower] <= self.offsets[upper])


class _Recorder(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]  # ortools is untyped
    """Keeps the latest solution, which is the lowest, where another thread can see it."""

    def __init__(self, model: _Model) -> None:
        super().__init__()
        self._model = model
        self.offsets: tuple[int, ...] | None = None
        self.lower_bound = 0

    def on_solution_callback(self) -> None:
        model = self._model
        self.offsets = tuple(self.value(offset) * model.unit for offset in model.offsets)
        self.lower_bound = model.height_unit * math.ceil(self.best_objective_bound)
