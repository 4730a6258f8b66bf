"""Why tensors that could share storage do not."""

from dataclasses import dataclass

from arenite.planner.rewrites.aliasing.kinds import AliasKind


@dataclass(frozen=True, slots=True)
class Refusal:
    """A sharing that was considered and left.

    Attributes:
        kind: Of the sharing.
        operator: Its name.
        tensor: What would have lain in the storage of another.
        reason: What is against it.
    """

    kind: AliasKind
    operator: str
    tensor: str
    reason: str
