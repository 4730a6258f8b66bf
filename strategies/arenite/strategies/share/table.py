"""The strategies that decide a whole buffer for each record."""

from arenite.planner import Strategy
from arenite.strategies.share.best_fit import ObjectsByBreadth, ObjectsBySize
from arenite.strategies.share.by_size_improved import ObjectsBySizeImproved
from arenite.strategies.share.executorch import Executorch
from arenite.strategies.share.min_cost_flow import ObjectsMinCostFlow
from arenite.strategies.share.mxnet import Mxnet
from arenite.strategies.share.over_time import ObjectsEqualSize, ObjectsInOrder, OnnxruntimeReuse

SHARE: tuple[Strategy, ...] = (
    ObjectsEqualSize(),
    ObjectsInOrder(),
    ObjectsBySize(),
    ObjectsBySizeImproved(),
    ObjectsByBreadth(),
    ObjectsMinCostFlow(),
    Mxnet(),
    OnnxruntimeReuse(),
    Executorch(),
)
"""In the order of the documentation; earlier ones win ties in `best`."""
