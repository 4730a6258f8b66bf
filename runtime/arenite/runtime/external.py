"""Steps that another runtime runs, on tensors that lie in our arena."""

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.planner.quiet_onnxruntime import FATAL
from arenite.runtime.errors import ProgramError
from arenite.runtime.targets.onnxruntime.errors import RunFailedError
from arenite.runtime.targets.onnxruntime.stock import refusal_types, refusals

Array = NDArray[Any]


def onnxruntime_step(
    label: str,
    name: str,
    model: bytes,
    inputs: Sequence[tuple[str, Array]],
    outputs: Sequence[tuple[str, Array]],
    threads: int,
) -> Callable[[], None]:
    """Return a function that runs a one-operator ONNX model on these arrays.

    It raises `RunFailedError` if ONNX Runtime fails on their contents.

    Args:
        label: Name of the program, for messages.
        name: Name of the step, for messages.
        model: Bytes of the ONNX file.
        inputs: Names in the file, with views into the arena or the weights.
        outputs: Names in the file, with views into the arena.
        threads: Number of threads of the kernel.

    Raises:
        MissingDependencyError: ONNX Runtime is absent.
        ProgramError: ONNX Runtime refuses the model, or the arrays for it.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise MissingDependencyError("onnxruntime", "onnx", f"step {name!r}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = FATAL
    try:
        with refusals(model):
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
            binding = session.io_binding()
            for tensor, array in inputs:
                binding.bind_input(tensor, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
            for tensor, array in outputs:
                binding.bind_output(tensor, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    except UnsupportedModelError as error:
        raise ProgramError(f"step {name!r}: {error}", path=label) from error

    gave_up = refusal_types()

    def run() -> None:
        try:
            session.run_with_iobinding(binding)
        except gave_up as error:
            raise RunFailedError(f"step {name!r}: ONNX Runtime gave up: {error}") from error

    return run
