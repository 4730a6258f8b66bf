"""What runs the steps of a session: ranges in the core, between steps of other runtimes."""

import time
from collections.abc import Callable
from typing import TypeAlias

from arenite.runtime import _core

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
    from arenite.runtime.external import onnxruntime_step

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
