"""Run the steps of a session: ranges of steps in the core, and single steps in ONNX Runtime."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from arenite.planner.errors import UnsupportedModelError, needing
from arenite.planner.quiet_onnxruntime import FATAL
from arenite.runtime import _core
from arenite.runtime.errors import ProgramError
from arenite.runtime.targets.onnxruntime.stock import RunFailedError, refusal_types, refusals


class _OnnxRuntimeStep:
    """A model of one operator that ONNX Runtime runs on tensors of a session.

    Args:
        label: Name of the program, for messages.
        native: The session of the core.
        step: The step.
        threads: Number of threads of the kernel.

    Raises:
        MissingDependencyError: ONNX Runtime is absent.
        ProgramError: ONNX Runtime refuses the model, or the tensors for it.
    """

    def __init__(
        self, label: str, native: _core.Session, step: _core.ExternalStep, threads: int
    ) -> None:
        with needing("onnxruntime", "onnx", f"step {step.name!r}"):
            import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = FATAL
        self._native, self._step = native, step
        self._sizes = native.sizes()
        if self._sizes:  # what a kernel takes at one size is given back, not kept for the next
            options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        model = native.view(step.model).tobytes()
        try:
            with refusals(model):
                self._session = onnxruntime.InferenceSession(
                    model, options, providers=["CPUExecutionProvider"]
                )
                self._binding = self._session.io_binding()
                self._bind()
        except UnsupportedModelError as error:
            raise ProgramError(f"step {step.name!r}: {error}", path=label) from error
        self._gave_up = refusal_types()

    def _bind(self) -> None:
        """Give ONNX Runtime the tensors at the present sizes, in the arena or the weights."""
        binding, step, view = self._binding, self._step, self._native.view
        for tensor, index in zip(step.input_names, step.inputs, strict=True):
            array = view(index)
            binding.bind_input(tensor, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        is_empty = True
        for tensor, index in zip(step.output_names, step.outputs, strict=True):
            array = view(index)
            is_empty = is_empty and not array.size
            binding.bind_output(tensor, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self._is_empty = is_empty

    def run(self) -> None:
        """Run the operator.

        Raises:
            RunFailedError: ONNX Runtime fails on the contents of the tensors.
        """
        try:
            sizes = self._native.sizes()
            if sizes != self._sizes:
                self._bind()
                self._sizes = sizes
            if not self._is_empty:
                self._session.run_with_iobinding(self._binding)
        except self._gave_up as error:
            raise RunFailedError(
                f"step {self._step.name!r} failed in ONNX Runtime: {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class Segment:
    """Turns that one runtime runs.

    Attributes:
        turns: Numbers of the turns.
        run: Runs some of them: the first, and the one after the last.
    """

    turns: range
    run: Callable[[int, int], None]


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
            segments.append(Segment(range(first, step.turn), native.run))
        segments.append(_external_segment(native, step, label, threads))
        first = step.turn + 1
    if first < native.num_turns or not segments:
        segments.append(Segment(range(first, native.num_turns), native.run))
    return tuple(segments)


def _external_segment(
    native: _core.Session, step: _core.ExternalStep, label: str, threads: int
) -> Segment:
    external = _OnnxRuntimeStep(label, native, step, threads)

    def timed(_first: int, _last: int) -> None:
        started = time.perf_counter_ns()
        external.run()
        native.note_nanoseconds(step.turn, time.perf_counter_ns() - started)

    return Segment(range(step.turn, step.turn + 1), timed)
