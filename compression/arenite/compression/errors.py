"""Errors of compression, beyond a model that cannot be read."""

from arenite.planner.errors import AreniteError


class CodedError(AreniteError):
    """Bytes that do not decode: damaged, truncated, or of a later version.

    Attributes:
        reason: What is wrong.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"coded weights cannot be read: {reason}; compress the model again")
        self.reason = reason
