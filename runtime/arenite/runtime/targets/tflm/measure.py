"""Run the real interpreter of TensorFlow Lite Micro and say what its arena takes.

The package `tflite-micro` is that interpreter, built for a 64-bit host (x86-64 Linux
only). It runs in a process of its own, which it may bring down.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from arenite.planner.errors import AreniteError, MissingDependencyError

NUM_RUNS: Final = 3
SEED: Final = 0
TAIL_PARTS: Final = {
    "tensors": "TfLiteEvalTensor data",
    "operators": "NodeAndRegistration struct",
    "kernels": "Persistent buffer data",
    "variables": "TfLiteTensor variable buffer data",
    "boundary": "Persistent TfLiteTensor data",
    "quantisation": "Persistent TfLiteTensor quantization data",
    "compression": "Persistent compression data",
}
"""Parts of the tail, by our names for them, as the interpreter's recording calls them."""

_PROGRAM: Final = Path(__file__).with_name("interpreter_process.py")


class InterpreterError(AreniteError):
    """TensorFlow Lite Micro cannot run the model.

    Attributes:
        path: The file.
        reason: The interpreter's own message.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: TensorFlow Lite Micro cannot run it: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the interpreter used, in bytes.

    Attributes:
        head: Planned tensors and kernel scratch.
        tail: What is kept as long as the interpreter; smaller on a 32-bit target.
        total: Head and tail.
        smallest: The smallest arena it works in, found by bisection.
        outputs: Digest of all outputs of `NUM_RUNS` runs on random inputs.
        kept: Bytes of the tail by what they are for, in the interpreter's own words.
    """

    head: int
    tail: int
    total: int
    smallest: int
    outputs: str
    kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def tail_parts(self) -> dict[str, int]:
        """Bytes of each part of the tail; those of `own` are what no part is told of."""
        parts = {part: self.kept.get(words, 0) for part, words in TAIL_PARTS.items()}
        return {**parts, "own": self.tail - sum(parts.values())}


def measure(path: Path, num_inputs: int, num_outputs: int) -> Measurement:
    """Return what the interpreter uses for this model, as the file plans it.

    Args:
        path: The file.
        num_inputs: Number of graph inputs.
        num_outputs: Number of graph outputs.

    Raises:
        InterpreterError: It cannot run the model.
        MissingDependencyError: The package is absent.

    Cost: five runs on random inputs and about twenty loads.
    """
    job = {
        "task": "measure",
        "model": str(path),
        "arena_bytes": 2**20,
        "seed": SEED,
        "num_runs": NUM_RUNS,
        "num_inputs": num_inputs,
        "num_outputs": num_outputs,
    }
    return Measurement(**ask(path, job))


def measure_bytes(path: Path, data: bytes, num_inputs: int, num_outputs: int) -> Measurement:
    """Return the same for a model that is not in a file yet; `path` is for messages."""
    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        copy = Path(folder) / "model.tflite"
        copy.write_bytes(data)
        try:
            return measure(copy, num_inputs, num_outputs)
        except InterpreterError as error:
            raise InterpreterError(path, error.reason) from error


def ask(path: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of the interpreter's process to a job.

    Raises:
        InterpreterError: It has none; `path` is for the message.
        MissingDependencyError: The package is absent.
    """
    if find_spec("tflite_micro") is None:
        raise MissingDependencyError(
            "tflite_micro", "tflm", "measuring in TensorFlow Lite Micro (x86-64 Linux)"
        )
    process = subprocess.run(
        [sys.executable, "-P", str(_PROGRAM)],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
        # Threads of a linear algebra library would not survive its forks.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    if process.returncode:
        words = process.stderr.strip().splitlines()
        reason = words[-1] if words else f"it ended with code {process.returncode}"
        raise InterpreterError(path, reason)
    answer: dict[str, Any] = json.loads(process.stdout)
    if "failure" in answer:
        raise InterpreterError(path, answer["failure"])
    return answer
