"""The scratch of kernels, measured with the real interpreter.

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
"""

import base64
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from arenite.planner.program import Step
from arenite.planner.tensors import Tensor, TensorKind
from arenite.planner.units import align_up
from arenite.runtime.targets.tflm.measure import ask
from arenite.runtime.targets.tflm.records import ALIGNMENT, LEFT_TO_INTERPRETER, TflmModel

_LEAST_FILLER_BYTES: Final = 4096
_SPARE_BYTES: Final = 2**22


def learn_scratch(model: TflmModel) -> dict[str, int]:
    """Return the bytes of kernel scratch by step name.

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
