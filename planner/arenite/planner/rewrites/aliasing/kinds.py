"""What may share storage."""

from enum import StrEnum


class AliasKind(StrEnum):
    """A way for tensors to share storage, each with its own switch."""

    VIEWS = "views"
    """Reshape and its like: other shape, same bytes."""
    IN_PLACE = "in-place"
    """Element-wise results over a dying operand of the same type and shape."""
    NORMALISATION = "normalisation"
    """Softmax and normalisation over a dying operand."""
    REUSE_INPUTS = "reuse-inputs"
    """Program inputs may be overwritten too, after their last use."""
    SLICES = "slices"
    """Parts along the outermost axis, inside the tensor they are cut from."""
    CONCAT = "concat"
    """Inputs of a concatenation along the outermost axis, written inside its result."""
    OVERLAP = "overlap"
    """Results of sliding windows that reach into the dying operand, where kernels are naive."""


SAFE_KINDS = tuple(kind for kind in AliasKind if kind is not AliasKind.OVERLAP)
"""The kinds that any kernel bears which computes what its operator says."""
