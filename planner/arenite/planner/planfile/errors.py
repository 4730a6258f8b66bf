"""Every way a plan file can be wrong.

::

    PlanFileError
    ├── UnreadablePlanFileError   cannot be opened, or larger than any plan
    ├── NotAPlanFileError         not JSON, or not of this format
    ├── UnknownVersionError       a version this reader does not know
    ├── MissingFieldError         a field is missing
    ├── UnknownFieldError         a field that the version does not have
    ├── WrongTypeError            a field has the wrong type or form
    ├── OutOfRangeError           a number, or a number of entries, that no arena can have
    ├── DuplicateNameError        two memories, records, tensors or operators share a name
    ├── UnknownMemoryError        a record lies in a memory that is not listed
    ├── UnknownDimensionError     an expression names a dimension that is not listed
    ├── InconsistentError         two fields contradict each other
    ├── WrongModelError           made for another model
    └── StaleRecordsError         made for other records of the same model
"""

from arenite.planner.errors import PlanFileError


class UnreadablePlanFileError(PlanFileError):
    """The file cannot be opened, or is larger than any plan."""


class NotAPlanFileError(PlanFileError):
    """The file is not JSON, or not of this format."""


class UnknownVersionError(PlanFileError):
    """The file is of a version this reader does not know."""


class MissingFieldError(PlanFileError):
    """A field is missing."""


class UnknownFieldError(PlanFileError):
    """A field that the version does not have."""


class WrongTypeError(PlanFileError):
    """A field has the wrong type or form."""


class OutOfRangeError(PlanFileError):
    """A number, or a number of entries, that no arena can have."""


class DuplicateNameError(PlanFileError):
    """Two memories, records, tensors or operators share a name."""


class UnknownMemoryError(PlanFileError):
    """A record lies in a memory that the file does not list."""


class UnknownDimensionError(PlanFileError):
    """An expression names a dimension that the file does not list."""


class InconsistentError(PlanFileError):
    """Two fields contradict each other."""


class WrongModelError(PlanFileError):
    """The plan was made for another model."""


class StaleRecordsError(PlanFileError):
    """The plan was made for other records of the same model."""
