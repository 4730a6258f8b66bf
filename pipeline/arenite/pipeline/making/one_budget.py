"""Arena, caches and resident weights within one budget: other weights are loaded in each run.

Two ways lead below a budget: bands lower the arena, and weights that are not resident are loaded
into windows of it. A byte costs a run its bands' slowdown in the one way, and the time to load it
in the other. Each arena of the frontier of bands leaves the weights its rest of the budget; the
pair of the shortest predicted run is taken.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from arenite.pipeline.base.errors import OneBudgetError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.costs import MachineCosts
from arenite.pipeline.making.fitted import FittedModel
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import SUFFIX
from arenite.pipeline.making.shortest_runs import measured_s
from arenite.planner import Budget, Link, TensorKind
from arenite.planner.errors import UnmetBudgetError
from arenite.runtime.rewrites import (
    Loading,
    WeightBudget,
    WeightBudgetError,
    resident_bytes,
    stream_weights,
)

_ATTEMPTS = 4
"""Budgets of weights that are tried beside an arena without bands."""
_WORTH_BANDS = 0.02
"""Share of the time of a run that bands must be able to save, to be searched."""
_SHARES = (1.0, 0.75, 0.5, 0.25)
"""Shares of the weights that a frontier keeps resident, the least besides."""


class OneBudget:
    """A model whose arena and resident weights share a budget."""

    def __init__(
        self,
        model: Path,
        reading: Reading,
        machine: MachineCosts | None = None,
        link: Link | None = None,
    ) -> None:
        """Read a model. Arguments and errors are those of `Fitting`.

        Args:
            reading: Its weight budget is the rest, or none; it may state how to load weights.
            link: Its speed back is that at which weights are loaded.
        """
        stated = reading.weight_budget
        self._loading: Loading | None = None if stated is None else stated.loading
        self._model, self._machine, self._link = model, machine, link
        self._reading = replace(reading, weight_budget=None)
        self._resident = self._fitting(None)
        self._least = self.most  # bytes of the smallest program that was found

    @property
    def most(self) -> int:
        """Bytes of the arena where every step runs whole, and of all weights."""
        return self._resident.whole.height + resident_bytes(self._resident.program)

    def within(self, budget: Budget) -> FittedModel:
        """Return the program of the shortest predicted run within a budget.

        Args:
            budget: Bytes, or a share of `most`.

        Raises:
            OneBudgetError: No program that was found needs so little.
        """
        size = budget.bytes_of(self.most)
        assert size is not None
        if self.most <= size:
            return FittedModel(self._resident, self._resident.whole, size)
        whole = self._whole_within(size)
        if whole is not None and self._may_gain(whole) < _WORTH_BANDS * whole.run_s:
            return whole
        banded = self._banded_within(size, whole)
        if banded is None and whole is None:
            raise OneBudgetError(size, self._least)
        found = [each for each in (whole, banded) if each is not None]
        return min(found, key=lambda each: each.run_s)

    def frontier(self) -> Iterator[FittedModel]:
        """Yield programs whose steps run whole, with fewer and fewer resident weights."""
        total = resident_bytes(self._resident.program)
        is_over = self._reading.limits.is_over()
        yield FittedModel(self._resident, self._resident.whole)
        for share in (*_SHARES[1:], 0.0):
            if is_over():
                return
            room = max(int(share * total), self._least_weights)
            fitting = self._fitting(room)
            yield FittedModel(fitting, fitting.ahead)
            if room > share * total:
                return

    def _whole_within(self, size: int) -> FittedModel | None:
        """Return the program whose steps run whole with the most resident weights, if one fits."""
        best: FittedModel | None = None
        room, tried = max(size - self._resident.whole.height, self._least_weights), set[int]()
        while room not in tried and len(tried) < _ATTEMPTS:
            tried.add(room)
            fitting = self._fitting(room)
            made = FittedModel(fitting, fitting.ahead, size)
            self._least = min(self._least, made.total)
            if made.total <= size and (best is None or made.total > best.total):
                best = made
            # Windows take less than their bytes where the arena has gaps, and more where it grows.
            room = max(room + size - made.total, self._least_weights)
        return best

    def _may_gain(self, whole: FittedModel) -> float:
        """Return the most seconds that bands may save: caches stay in the arena, the rest goes."""
        program = self._resident.program
        kept = sum(each.size for each in program.tensors.values() if each.kind is TensorKind.STATE)
        bytes_more = min(whole.height - kept, whole.loaded_weights)
        return bytes_more / self._resident.link.back

    def _banded_within(self, size: int, whole: FittedModel | None) -> FittedModel | None:
        """Return the program in bands of the shortest predicted run, None if none is shorter."""
        base = self._resident
        predicted: list[tuple[float, int]] = []
        for fit in base.frontier()[1:]:
            room = size - fit.height
            if room >= self._least_weights:
                streaming = stream_weights(base.program, room, self._loading)
                predicted.append((base.run_s(fit, streaming.program), room))
        seconds, room = min(predicted, default=(math.inf, 0))
        if not room or (whole is not None and seconds >= whole.run_s):
            return None
        fitting = self._fitting(room)
        try:
            fit = fitting.within(Budget(size - fitting.resident_weights), None)
        except UnmetBudgetError as error:
            self._least = min(self._least, fitting.resident_weights + error.least)
            return None
        return FittedModel(fitting, fit, size)

    @cached_property
    def _least_weights(self) -> int:
        """The smallest budget that weights can meet, windows among them."""
        try:
            stream_weights(self._resident.program, 1, self._loading)
        except WeightBudgetError as error:
            return error.least
        return 1

    def _fitting(self, room: int | None) -> Fitting:
        budget = None if room is None else WeightBudget(room, loading=self._loading)
        reading = replace(self._reading, weight_budget=budget)
        return Fitting(self._model, reading, self._machine, self._link)


def measured_runs_s(models: list[FittedModel]) -> list[float]:
    """Return the seconds of the shortest run of each of some programs of a model, measured.

    Raises:
        UnloadableError: No session runs one.
        OutputError: Their files cannot be written to the folder of temporary files.
    """
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{index}{SUFFIX}" for index in range(len(models))]
        for model, path in zip(models, paths, strict=True):
            model.save(path)
        return measured_s(paths, models[0].fitting.program)
