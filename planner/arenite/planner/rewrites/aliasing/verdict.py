"""Why tensors that could share storage do not."""

from dataclasses import dataclass

from arenite.planner.rewrites.aliasing.kinds import AliasKind


@dataclass(frozen=True, slots=True)
class Refusal:
    """A case in which storage could not be shared.

    Attributes:
        kind: Kind of sharing.
        operator: Name of the operator.
        tensor: The tensor that would have used another's storage.
        reason: Why it could not.
    """

    kind: AliasKind
    operator: str
    tensor: str
    reason: str
