"""What may share storage."""

from enum import StrEnum


class AliasKind(StrEnum):
    """A way for tensors to share storage, each with its own switch."""

    VIEWS = "views"
    """Reshape and the like: another shape, the same bytes."""
    IN_PLACE = "in-place"
    """Element-wise results over an operand of the same type and shape, at its last use."""
    NORMALISATION = "normalisation"
    """Softmax and normalisation over an operand, at its last use."""
    REUSE_INPUTS = "reuse-inputs"
    """Program inputs may be overwritten too, after their last use."""
    SLICES = "slices"
    """Parts along the outermost axis, inside the tensor they are cut from."""
    CONCAT = "concat"
    """Inputs of a concatenation along the outermost axis, written inside its result; along
    another axis one of them, if the kernel spreads its rows in place."""
    OVERLAP = "overlap"
    """Results of sliding windows that overlap the operand, if kernels compute row by row."""


SAFE_KINDS = tuple(kind for kind in AliasKind if kind is not AliasKind.OVERLAP)
"""The kinds that are safe with any kernel that keeps the promises of its operator."""
