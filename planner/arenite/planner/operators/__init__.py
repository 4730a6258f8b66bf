"""Operators: each class states its traits, so no code depends on operator names.

The base class promises nothing; unknown operators belong to it. Traits that several classes
share are mixins, one per module. Each importer has one table from the operators of its format to
their classes; the runtime's own operators use the same mixins.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.operators.bands import Band, Pieces
    from arenite.planner.operators.imported import AttributeValue, Imported, Opaque
    from arenite.planner.operators.moving import Fetch, Narrow, Pack, Spill, Unpack, Wait, Widen
    from arenite.planner.operators.operator import (
        Operands,
        Operator,
        Region,
        aligned_axes,
        broadcast_region,
        same_layout,
        same_places,
        whole,
    )
    from arenite.planner.operators.parts import Part, part_at, parts_along_axis
    from arenite.planner.operators.streams import Along, row_by_row
    from arenite.planner.operators.strips import NarrowLayer, Strip, Strips, WideLayer, in_strips
    from arenite.planner.operators.traits import ElementWise, Keeping, Normalising, Viewing
    from arenite.planner.operators.windows import (
        AutoPad,
        Sliding,
        Spread,
        Window,
        num_positions,
        sliding_over,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Along", "AttributeValue", "AutoPad", "Band", "ElementWise", "Fetch", "Imported", "Keeping",
    "Narrow", "NarrowLayer", "Normalising", "Opaque", "Operands", "Operator", "Pack", "Part",
    "Pieces", "Region", "Sliding", "Spill", "Spread", "Strip", "Strips", "Unpack", "Viewing",
    "Wait", "WideLayer", "Widen", "Window", "aligned_axes", "broadcast_region", "in_strips",
    "num_positions", "part_at", "parts_along_axis", "row_by_row", "same_layout", "same_places",
    "sliding_over", "whole",
]  # fmt: skip
