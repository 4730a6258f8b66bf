"""Let a tensor lie in the storage of another: one kind of sharing a module.

Decided in passes. The first walks the operators: views, and results written over an
operand that dies; each takes a whole storage of its own size, so it can only help. The
second packs what is a part of something larger, slices and concatenated inputs; that keeps
the larger storage longer, so it is done only where the load falls. The third, for targets
whose kernels are known, lets results reach into the operands that they use up.
"""

from arenite.planner.rewrites.aliasing.kinds import SAFE_KINDS, AliasKind
from arenite.planner.rewrites.aliasing.overlap import permitted_overlap
from arenite.planner.rewrites.aliasing.overwriting import overwritable
from arenite.planner.rewrites.aliasing.permission import permit_overlaps
from arenite.planner.rewrites.aliasing.rewrite import Aliasing, explain, has_parts, share
from arenite.planner.rewrites.aliasing.verdict import Refusal

__all__ = [
    "SAFE_KINDS",
    "AliasKind",
    "Aliasing",
    "Refusal",
    "explain",
    "has_parts",
    "overwritable",
    "permit_overlaps",
    "permitted_overlap",
    "share",
]
