"""The strategies that decide an offset for each record."""

from arenite.planner.strategy import Strategy
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.greedy_by_area import GreedyByArea
from arenite.strategies.place.greedy_by_breadth import GreedyByBreadth
from arenite.strategies.place.greedy_by_lifetime import GreedyByLifetime
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.no_reuse import NoReuse
from arenite.strategies.place.onnxruntime_pattern import OnnxruntimePattern
from arenite.strategies.place.optimal import Optimal
from arenite.strategies.place.stairs import Stairs
from arenite.strategies.place.strip_packing import StripPacking
from arenite.strategies.place.tflite_cpu import TfliteCpu
from arenite.strategies.place.tflm import Tflm
from arenite.strategies.place.tvm_by_conflicts import TvmByConflicts
from arenite.strategies.place.tvm_by_size import TvmBySize
from arenite.strategies.place.tvm_hill_climb import TvmHillClimb
from arenite.strategies.place.xla_best_fit import XlaBestFit

PLACE: tuple[Strategy, ...] = (
    NoReuse(),
    GreedyBySize(),
    GreedyByBreadth(),
    GreedyByArea(),
    GreedyByLifetime(),
    StripPacking(),
    Tflm(),
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
