"""Training in our runtime alone, in a process that imports nothing else."""

from pathlib import Path
from typing import Any

import numpy as np

from arenite.runtime import Session
from bench.harness.measuring import peak_rss_bytes

BATCH = 32


def train_here(folder: str) -> tuple[int, int, int]:
    """Train in our runtime; return the bytes of arena, states and process."""
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
