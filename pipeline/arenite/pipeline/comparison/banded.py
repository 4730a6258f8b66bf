"""Bands of rows beside the policies, at the same budgets: programs of our own runtime."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.comparison.policy_results import PolicyResult
from arenite.pipeline.making.costs import FLOAT, MachineCosts
from arenite.pipeline.making.fitting import Fitting
from arenite.planner.budget import Budget
from arenite.planner.candidate import Candidate
from arenite.planner.costs import Costs
from arenite.planner.errors import AreniteError, UnmetBudgetError

BANDS = "bands"


def banded_results(
    path: Path,
    reading: Reading,
    budgets: Sequence[Budget],
    peak: int,
    costs: Costs,
    limits: SearchLimits,
) -> Iterator[PolicyResult]:
    """Yield what bands make of a model, a result a budget; why not, where our runtime cannot.

    Args:
        path: The model.
        reading: How it is read.
        budgets: What is asked for.
        peak: Bytes that budgets of a percentage are of.
        costs: What predicts times.
        limits: Limits of each budget's search, and its observer.
    """
    plans = [PolicyResult(BANDS, str(budget), budget.bytes_of(peak)) for budget in budgets]
    seconds = limits.time_limit_s
    every = replace(limits, time_limit_s=None if seconds is None else seconds * len(budgets))
    own = replace(reading, target=None, limits=every)
    begin = time.perf_counter()
    try:
        fitting = Fitting(path, own, MachineCosts("costs that are stated", {FLOAT: costs}))
    except AreniteError as error:
        for each in plans:
            yield replace(each, decide_s=time.perf_counter() - begin, reason=str(error))
        return
    for each in plans:
        try:
            fit = _fit(fitting, each.limit)
        except UnmetBudgetError as error:
            result = replace(each, reached=error.reached, reason=str(error))
        else:
            result = replace(
                each, peak=fit.height, extra_time=fit.slowdown, seconds=fit.seconds,
                stalled_s=0.0, bytes_out=0, bytes_back=0, num_repeated=0,
            )  # fmt: skip
        yield replace(result, decide_s=time.perf_counter() - begin)
        begin = time.perf_counter()


def _fit(fitting: Fitting, limit: int | None) -> Candidate:
    """Return the quickest program within a limit, or the least."""
    if limit is None:
        return fitting.frontier()[-1]
    return fitting.within(Budget(limit), None)
