"""Element types that the core can place."""

from arenite.planner.dtypes import DType
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.program import Program

KNOWN_TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64,
    DType.BOOL,
)  # fmt: skip


def check_input_types(model: Program) -> None:
    """Check that the core knows the type of every input of a model.

    Raises:
        UnsupportedModelError: It cannot.
    """
    for name in model.input_tensors:
        dtype = model.tensors[name].dtype
        if dtype not in KNOWN_TYPES:
            raise UnsupportedModelError(name, f"the runtime has no {dtype.label}")
