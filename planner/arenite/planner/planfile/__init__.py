"""The arena plan file, specified in `docs/plan-file.md`.

Every field of a file is checked and its plan verified before `read` returns it.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.planner.planfile.bands import Bands, RegionOf, StripsOf
    from arenite.planner.planfile.contents import ModelReference, PlanFile, write
    from arenite.planner.planfile.errors import (
        DuplicateNameError,
        InconsistentError,
        MissingFieldError,
        NotAPlanFileError,
        OutOfRangeError,
        StaleRecordsError,
        UnknownDimensionError,
        UnknownFieldError,
        UnknownMemoryError,
        UnknownVersionError,
        UnreadablePlanFileError,
        WrongModelError,
        WrongTypeError,
    )
    from arenite.planner.planfile.reading import read
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Bands", "DuplicateNameError", "InconsistentError", "MissingFieldError", "ModelReference",
    "NotAPlanFileError", "OutOfRangeError", "PlanFile", "RegionOf", "StaleRecordsError",
    "StripsOf", "UnknownDimensionError", "UnknownFieldError", "UnknownMemoryError",
    "UnknownVersionError", "UnreadablePlanFileError", "WrongModelError", "WrongTypeError", "read",
    "write",
]  # fmt: skip
