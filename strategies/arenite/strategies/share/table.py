"""The strategies that decide a whole buffer for each record."""

from arenite.planner.strategy import Strategy
from arenite.strategies.share.executorch import Executorch
from arenite.strategies.share.mxnet import Mxnet
from arenite.strategies.share.objects_by_breadth import ObjectsByBreadth
from arenite.strategies.share.objects_by_size import ObjectsBySize
from arenite.strategies.share.objects_by_size_improved import ObjectsBySizeImproved
from arenite.strategies.share.objects_equal_size import ObjectsEqualSize
from arenite.strategies.share.objects_in_order import ObjectsInOrder
from arenite.strategies.share.objects_min_cost_flow import ObjectsMinCostFlow
from arenite.strategies.share.onnxruntime_reuse import OnnxruntimeReuse

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
