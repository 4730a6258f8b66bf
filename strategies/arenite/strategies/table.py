"""The table of strategies: being in it is enough to be tested, compared and offered.

Third parties add theirs by the entry point group `arenite.strategies`, one name each.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from arenite.planner.errors import UnknownStrategyError
from arenite.planner.strategy import Strategy
from arenite.strategies.best import Best
from arenite.strategies.place.cp_sat import CpSat
from arenite.strategies.place.greedy_by_area import GreedyByArea
from arenite.strategies.place.greedy_by_breadth import GreedyByBreadth
from arenite.strategies.place.greedy_by_lifetime import GreedyByLifetime
from arenite.strategies.place.greedy_by_size import GreedyBySize
from arenite.strategies.place.no_reuse import NoReuse
from arenite.strategies.place.onnxruntime_pattern import OnnxruntimePattern
from arenite.strategies.place.optimal import Optimal
from arenite.strategies.place.strip_packing import StripPacking
from arenite.strategies.place.tflite_cpu import TfliteCpu
from arenite.strategies.place.tflm import Tflm
from arenite.strategies.place.tvm_by_conflicts import TvmByConflicts
from arenite.strategies.place.tvm_by_size import TvmBySize
from arenite.strategies.place.tvm_hill_climb import TvmHillClimb
from arenite.strategies.place.xla_best_fit import XlaBestFit
from arenite.strategies.share.executorch import Executorch
from arenite.strategies.share.mxnet import Mxnet
from arenite.strategies.share.objects_by_breadth import ObjectsByBreadth
from arenite.strategies.share.objects_by_size import ObjectsBySize
from arenite.strategies.share.objects_by_size_improved import ObjectsBySizeImproved
from arenite.strategies.share.objects_equal_size import ObjectsEqualSize
from arenite.strategies.share.objects_in_order import ObjectsInOrder
from arenite.strategies.share.objects_min_cost_flow import ObjectsMinCostFlow
from arenite.strategies.share.onnxruntime_reuse import OnnxruntimeReuse

STRATEGIES: tuple[Strategy, ...] = (
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
    CpSat(),
    Optimal(),
    ObjectsEqualSize(),
    ObjectsInOrder(),
    ObjectsBySize(),
    ObjectsBySizeImproved(),
    ObjectsByBreadth(),
    ObjectsMinCostFlow(),
    Mxnet(),
    OnnxruntimeReuse(),
    Executorch(),
    Best(),
)
"""Ours, in the order of the documentation; earlier ones win ties in `best`."""

ENTRY_POINT_GROUP = "arenite.strategies"


@cache
def known() -> dict[str, Strategy]:
    """Return ours and those that installed packages register, by name.

    Raises:
        ValueError: Two strategies have the same name, or a registered object is not a
            strategy.
    """
    by_name: dict[str, Strategy] = {}
    for strategy in STRATEGIES:
        _add(by_name, strategy, "arenite")
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        _add(by_name, _load(entry_point), entry_point.value)
    return by_name


def find(name: str) -> Strategy:
    """Return the strategy of that name.

    Raises:
        UnknownStrategyError: There is none; the error lists the known.
    """
    by_name = known()
    if name not in by_name:
        raise UnknownStrategyError(name, tuple(by_name))
    return by_name[name]


def _load(entry_point: EntryPoint) -> Strategy:
    loaded = entry_point.load()
    strategy = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(strategy, Strategy):
        raise ValueError(f"entry point {entry_point.value!r} is not a strategy")
    return strategy


def _add(by_name: dict[str, Strategy], strategy: Strategy, origin: str) -> None:
    if strategy.name in by_name:
        raise ValueError(f"{origin}: a strategy named {strategy.name!r} exists already")
    by_name[strategy.name] = strategy
