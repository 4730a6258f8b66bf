"""Steps of training, timed or run in a process that imports one runtime alone."""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.harness.measuring import peak_rss_bytes

Arrays: TypeAlias = dict[str, NDArray[Any]]

_FEWEST_STEPS = 3


def ours(folder: str, seconds: float) -> tuple[float, int]:
    """Return the processor seconds of a step in our runtime, and the bytes of the process."""
    from arenite.runtime import Session

    with np.load(Path(folder) / "feeds.npz") as saved:
        feeds = dict(saved)
    with Session(Path(folder) / "step.arena") as session:
        return _median(lambda: session.run(feeds), seconds), peak_rss_bytes()


def theirs(folder: str, seconds: float) -> tuple[float, int]:
    """Return the same for ONNX Runtime, which is given every state in every run."""
    import onnxruntime

    feeds: Arrays = {}
    for name in ("feeds.npz", "states.npz"):
        with np.load(Path(folder) / name) as saved:
            feeds.update(saved)
    replaced_by: dict[str, str] = json.loads((Path(folder) / "states.json").read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(Path(folder) / "step.onnx"), options)
    names = [each.name for each in session.get_outputs()]

    def step() -> None:
        made = dict(zip(names, session.run(names, feeds), strict=True))
        feeds.update({state: made[new] for state, new in replaced_by.items()})

    return _median(step, seconds), peak_rss_bytes()


def _median(step: Callable[[], object], seconds: float) -> float:
    step()
    found: list[float] = []
    while len(found) < _FEWEST_STEPS or sum(found) < seconds:
        begin = time.process_time()
        step()
        found.append(time.process_time() - begin)
    return statistics.median(found)


BATCH = 32


def train_here(folder: str) -> tuple[int, int, int]:
    """Train in our runtime; return the bytes of arena, states and process."""
    from arenite.runtime import Session

    data = np.load(Path(folder) / "batches.npz")
    images, labels = data["image"], data["labels"]
    with Session(Path(folder) / "step.arena") as session:
        for start in range(0, len(labels), BATCH):
            stop = start + BATCH
            session.run({"image": images[start:stop], "labels": labels[start:stop]})
        states = session.states
        arrays: dict[str, Any] = dict(states)
        np.savez(Path(folder) / "here.npz", **arrays)
        size = sum(each.nbytes for each in states.values())
        return session.arena_bytes, size, peak_rss_bytes()
