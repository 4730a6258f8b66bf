"""The strategies that decide an offset for each record."""

from arenite.planner import Strategy
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.no_reuse import NoReuse
from arenite.strategies.place.one_pass import (
    GreedyByArea,
    GreedyByBreadth,
    GreedyByLifetime,
    GreedyBySize,
    OnnxruntimePattern,
    TfliteCpu,
    TflmGreedy,
    XlaBestFit,
)
from arenite.strategies.place.optimal import Optimal
from arenite.strategies.place.stairs import Stairs
from arenite.strategies.place.strip_packing import StripPacking
from arenite.strategies.place.tvm import TvmByConflicts, TvmBySize, TvmHillClimb

PLACE: tuple[Strategy, ...] = (
    NoReuse(),
    GreedyBySize(),
    GreedyByBreadth(),
    GreedyByArea(),
    GreedyByLifetime(),
    StripPacking(),
    TflmGreedy(),
    TfliteCpu(),
    OnnxruntimePattern(),
    TvmBySize(),
    TvmByConflicts(),
    TvmHillClimb(),
    XlaBestFit(),
    Stairs(),
    CpSat(),
    Optimal(),
)
"""In the order of the documentation; earlier ones win ties in `best`."""
