"""Run the steps of a session: ranges of steps in the core, and single steps in ONNX Runtime."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

from arenite.planner.errors import UnsupportedModelError, needing
from arenite.planner.quiet_onnxruntime import FATAL
from arenite.runtime import _core
from arenite.runtime.errors import ProgramError
from arenite.runtime.targets.onnxruntime.stock import RunFailedError, refusal_types, refusals

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
    with needing("onnxruntime", "onnx", f"step {name!r}"):
        import onnxruntime
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
            raise RunFailedError(f"step {name!r} failed in ONNX Runtime: {error}") from error

    return run


Segment: TypeAlias = Callable[[], None]


def segments_of(native: _core.Session, label: str, threads: int) -> tuple[Segment, ...]:
    """Return what runs all turns, in their order.

    Args:
        native: The session of the core.
        label: Name of the program, for messages.
        threads: Number of threads of steps of other runtimes.
    """
    segments: list[Segment] = []
    first = 0
    for step in native.external_steps():
        if step.turn > first:
            segments.append(_core_segment(native, first, step.turn))
        segments.append(_external_segment(native, step, label, threads))
        first = step.turn + 1
    if first < native.num_turns or not segments:
        segments.append(_core_segment(native, first, native.num_turns))
    return tuple(segments)


def _core_segment(native: _core.Session, first: int, last: int) -> Segment:
    return lambda: native.run(first, last)


def _external_segment(
    native: _core.Session, step: _core.ExternalStep, label: str, threads: int
) -> Segment:

    view, turn = native.view, step.turn
    run = onnxruntime_step(
        label,
        step.name,
        view(step.model).tobytes(),
        [(n, view(t)) for n, t in zip(step.input_names, step.inputs, strict=True)],
        [(n, view(t)) for n, t in zip(step.output_names, step.outputs, strict=True)],
        threads,
    )

    def timed() -> None:
        started = time.perf_counter_ns()
        run()
        native.note_nanoseconds(turn, time.perf_counter_ns() - started)

    return timed
