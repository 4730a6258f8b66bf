"""Rewrites of the programs that our runtime runs: program to program, one per module."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.rewrites.attention import fuse_attention
    from arenite.runtime.rewrites.caches import grow_states
    from arenite.runtime.rewrites.channels import split_channels
    from arenite.runtime.rewrites.fusing import fold_pads, fuse_sums, without_unread
    from arenite.runtime.rewrites.halves import Activations, keep_halves, with_room
    from arenite.runtime.rewrites.heads import split_heads
    from arenite.runtime.rewrites.hop_program import Streamed, streamed
    from arenite.runtime.rewrites.hops import Hops, NotStreamedError, Padding, WindowStep
    from arenite.runtime.rewrites.kept_caches import Caches, keep_caches
    from arenite.runtime.rewrites.kept_weights import (
        ShortWeights,
        keep_short_weights,
        short_weights,
        without_rise,
    )
    from arenite.runtime.rewrites.lanes import (
        derive_ahead,
        load_ahead,
        loads_as_in,
        loads_beside,
        loads_in_turn,
        lower_moves,
    )
    from arenite.runtime.rewrites.packing import pack_filters, packed_filter, packed_integer_filter
    from arenite.runtime.rewrites.streaming import (
        Loading,
        NoRestError,
        Streaming,
        WeightBudget,
        WeightBudgetError,
        resident_bytes,
        stream_weights,
        weight_bytes,
    )
    from arenite.runtime.rewrites.tiles import (
        DIRECT,
        PROCESSOR,
        SPEEDS,
        TILES,
        TILES_HERE,
        Kernels,
        Prefer,
        Speeds,
        all_by,
        by_table,
        has_slower_tiles,
        measured,
        num_by_tile,
        quickest_first,
        steps_by_tiles,
        takes_tiles,
        with_tiles,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "DIRECT", "PROCESSOR", "SPEEDS", "TILES", "TILES_HERE", "Activations", "Caches", "Hops",
    "Kernels", "Loading", "NoRestError", "NotStreamedError", "Padding", "Prefer", "ShortWeights",
    "Speeds", "Streamed", "Streaming", "WeightBudget", "WeightBudgetError", "WindowStep", "all_by",
    "by_table", "derive_ahead", "fold_pads", "fuse_attention", "fuse_sums", "grow_states",
    "has_slower_tiles", "keep_caches", "keep_halves", "keep_short_weights", "load_ahead",
    "loads_as_in", "loads_beside", "loads_in_turn", "lower_moves", "measured", "num_by_tile",
    "pack_filters", "packed_filter", "packed_integer_filter", "quickest_first", "resident_bytes",
    "short_weights", "split_channels", "split_heads", "steps_by_tiles", "stream_weights",
    "streamed", "takes_tiles", "weight_bytes", "with_room", "with_tiles", "without_rise",
    "without_unread",
]  # fmt: skip
