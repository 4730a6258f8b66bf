"""What a stock session's runs take, by its own profile.

ONNX Runtime notes at every kernel what its CPU arena has been asked for and holds.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from arenite.runtime.targets.onnxruntime.errors import UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime.stock import refusals, stock_session

_SUFFIX: Final = "_kernel_time"


@dataclass(frozen=True, slots=True)
class StockMemory:
    """What the CPU arena of a stock session has, in bytes, weights left out.

    Attributes:
        tensors: Asked for and not given back, at most at the end of a kernel.
        in_use: Taken by these and by kernel scratch, as the arena rounds them, at most.
        held: Taken from the system at the end.
        order: Names of the nodes as they ran.
        outputs: Outputs of the last run.
    """

    tensors: int
    in_use: int
    held: int
    order: tuple[str, ...]
    outputs: Sequence[NDArray[Any]]


def stock_memory(
    model: Path | bytes,
    options: Any,
    feeds: Mapping[str, NDArray[Any]],
    *,
    num_runs: int = 1,
) -> StockMemory:
    """Return what a stock session takes to run a model.

    Args:
        model: The model.
        options: Session options; profiling is switched on in them.
        feeds: The inputs.
        num_runs: How often to run; from the second on, ONNX Runtime may take one block
            for all the tensors that it knows.

    Raises:
        UnsupportedModelError: ONNX Runtime refuses the model or gives up on a run.
        UnexpectedRuntimeError: This version does not note its memory.
        MissingDependencyError: The package onnxruntime is absent.
    """
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = str(Path(folder) / "profile")
        session = stock_session(model, options)
        with refusals(model):
            for _ in range(num_runs):
                outputs: Sequence[NDArray[Any]] = []  # those of the run before are given back
                outputs = session.run(None, feeds)
        events = _events(Path(session.end_profiling()))
    kernels = [event for event in events if event["name"].endswith(_SUFFIX)]
    names = tuple(event["name"].removesuffix(_SUFFIX) for event in kernels)
    notes = [event["args"] for event in kernels]
    if not notes:
        return StockMemory(0, 0, 0, (), outputs)
    try:
        tensors = _above_start(notes, "mem_bytes_requested_in_use", "mem_requested_in_use_delta")
        weights = int(notes[0]["mem_bytes_in_use"]) - int(notes[0]["mem_in_use_delta"])
        in_use = max(int(note["mem_in_use_peak"]) for note in notes) - weights
        held = int(notes[-1]["mem_arena_held"]) - weights
    except KeyError as error:
        raise UnexpectedRuntimeError(
            f"this version of onnxruntime does not note its memory (no {error}); update it"
        ) from error
    return StockMemory(
        tensors, in_use, held, names[len(names) - len(names) // num_runs :], outputs
    )


def _above_start(notes: Sequence[Mapping[str, Any]], key: str, delta_key: str) -> int:
    """Return the most there was of something, above what was there before the first kernel."""
    start = int(notes[0][key]) - int(notes[0][delta_key])
    return max(int(note[key]) for note in notes) - start


def _events(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_bytes())
    return events
