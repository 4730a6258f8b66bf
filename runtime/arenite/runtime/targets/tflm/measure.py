"""Measure the arena of the real interpreter of TensorFlow Lite Micro.

The package `tflite-micro` is that interpreter, built for a 64-bit host (x86-64 Linux
only). It runs in a process of its own, which it may bring down.
"""

import base64
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

from arenite.planner import AreniteError, Step, Tensor, TensorKind
from arenite.planner.errors import MissingDependencyError
from arenite.planner.units import align_up
from arenite.runtime.targets.tflm.records import ALIGNMENT, LEFT_TO_INTERPRETER, TflmModel

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
    """Memory of the interpreter, in bytes.

    Attributes:
        head: Planned tensors and kernel scratch.
        tail: Structures that live as long as the interpreter; smaller on a 32-bit target.
        total: Head and tail.
        smallest: The smallest arena it works in, found by bisection.
        outputs: Digest of all outputs of `NUM_RUNS` runs on random inputs.
        kept: Bytes of the tail by purpose, in the interpreter's own words.
    """

    head: int
    tail: int
    total: int
    smallest: int
    outputs: str
    kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def tail_parts(self) -> dict[str, int]:
        """Bytes of each part of the tail; `own` is the rest."""
        parts = {part: self.kept.get(words, 0) for part, words in TAIL_PARTS.items()}
        return {**parts, "own": self.tail - sum(parts.values())}


def measure_arena(path: Path, num_inputs: int, num_outputs: int) -> Measurement:
    """Return the memory of the interpreter for this model, as the file plans it.

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
            return measure_arena(copy, num_inputs, num_outputs)
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
        reason = words[-1] if words else f"the process exited with code {process.returncode}"
        raise InterpreterError(path, reason)
    answer: dict[str, Any] = json.loads(process.stdout)
    if "failure" in answer:
        raise InterpreterError(path, answer["failure"])
    return answer


_LEAST_FILLER_BYTES: Final = 4096
_SPARE_BYTES: Final = 2**22


def learn_scratch(model: TflmModel) -> dict[str, int]:
    """Return the bytes of kernel scratch by step name.

    No file states it. For each operator a model with no other operator is made, with all tensors
    fixed one after another, so that whatever the head has beyond them is scratch::

        | filler | input | output | scratch ... |
        0                         ^ known       ^ measured: the head

    All tensors of other operators lie at 0: the interpreter reserves bytes for them too, though
    they are unused. The filler is as large as the largest of them, and keeps the head above what
    the interpreter itself needs there while it prepares the operators.

    An operator may ask for several pieces. They are planned as one block of their sum. The
    interpreter then puts each piece into the first gap, largest first; whatever lies in that
    block ends within it, so the head stays within the plan.

    An operator that the interpreter cannot prepare by itself is taken to need none.

    Raises:
        InterpreterError: The interpreter's process failed.
        MissingDependencyError: The package is absent.

    Cost: a load of the model for each operator.
    """
    sizes = (tensor.size for tensor in model.program.tensors.values() if _is_placed(tensor))
    filler_bytes = align_up(max(sizes, default=0) + _LEAST_FILLER_BYTES, ALIGNMENT)
    steps = [step for step in model.program.steps if step.name in model.operators]
    probes = [_probe(model, step, filler_bytes) for step in steps]
    highest = max((probe.top for probe in probes), default=0)
    with tempfile.TemporaryDirectory(prefix="arenite-") as folder:
        body = Path(folder) / "body"
        body.write_bytes(model.file.body)
        job = {
            "task": "scratch",
            "body": str(body),
            "fronts": [base64.b64encode(probe.front).decode() for probe in probes],
            "arena_bytes": _SPARE_BYTES + 2 * highest,
        }
        heads = ask(model.path, job)["heads"]
    return {
        step.name: head - probe.top
        for step, head, probe in zip(steps, heads, probes, strict=True)
        if head is not None and head > probe.top
    }


@dataclass(frozen=True, slots=True)
class _Probe:
    """A model of one operator: its front, and where the last of its tensors ends."""

    front: bytes
    top: int


def _probe(model: TflmModel, step: Step, filler_bytes: int) -> _Probe:
    top = filler_bytes
    place = model.operators[step.name]
    num_tensors = model.file.num_tensors_of(place[0])
    first = model.file.number(place[0], 0)
    indexes = {
        name: number - first
        for name, number in model.tensor_indexes.items()
        if 0 <= number - first < num_tensors
    }
    offsets = [0] * (num_tensors + 1)
    for name, tensor_index in indexes.items():
        if not _is_placed(model.program.tensors[name]):
            offsets[tensor_index] = LEFT_TO_INTERPRETER
    for name in dict.fromkeys((*step.reads, *step.writes)):
        if _is_placed(model.program.tensors[name]):
            offsets[indexes[name]] = top
            top += align_up(model.program.tensors[name].size, ALIGNMENT)
    reads, writes = (
        [indexes[name] for name in names if _is_placed(model.program.tensors[name])]
        for names in (step.reads, step.writes)
    )
    return _Probe(model.file.of_operator(place, reads, writes, filler_bytes, offsets), top)


def _is_placed(tensor: Tensor) -> bool:
    return tensor.kind not in (TensorKind.CONSTANT, TensorKind.STATE)
