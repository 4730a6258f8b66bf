"""Rewrites: program to program; and the derivation, which ends with records."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.rewrites.activations import fuse_activations
    from arenite.planner.rewrites.aliasing.overlap import permit_overlaps, permitted_overlap
    from arenite.planner.rewrites.aliasing.rewrite import (
        Aliasing,
        Refusal,
        explain,
        has_parts,
        overwritable,
        share,
    )
    from arenite.planner.rewrites.candidate import Candidate
    from arenite.planner.rewrites.derivation import Derivation, derive, records
    from arenite.planner.rewrites.narrowing import keep_narrow
    from arenite.planner.rewrites.noops import drop_noops
    from arenite.planner.rewrites.rescheduling import (
        ALIGNMENT,
        Reschedulable,
        Schedule,
        SpillSpan,
        peak_of,
        problem_of,
        reschedule,
        with_views,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "ALIGNMENT", "Aliasing", "Candidate", "Derivation", "Refusal", "Reschedulable", "Schedule",
    "SpillSpan", "derive", "drop_noops", "explain", "fuse_activations", "has_parts", "keep_narrow",
    "overwritable", "peak_of", "permit_overlaps", "permitted_overlap", "problem_of", "records",
    "reschedule", "share", "with_views",
]  # fmt: skip
