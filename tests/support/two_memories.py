"""Models whose tensors lie in two memories, from the program on."""

from dataclasses import replace
from pathlib import Path

from arenite.pipeline.targets.compiling import Compiled, lower, rules
from arenite.planner.files import model_digest
from arenite.planner.importers import load
from arenite.planner.importers.models import Source
from arenite.planner.rewrites.derivation import derive
from arenite.planner.tensors import Memory
from arenite.strategies import find_order

FAST = Memory("fast", alignment=128)


def in_two_memories(path: Path) -> Compiled:
    """Return a model with every other storage in a second memory, and the records of both."""
    program = lower(load(path, weights=True))
    roots = {name: program.root(name)[0] for name in program.tensors}
    storages = dict.fromkeys(root for root in roots.values() if root not in program.constants)
    fast = set(list(storages)[1::2])
    tensors = {
        name: replace(tensor, memory=FAST.name) if roots[name] in fast else tensor
        for name, tensor in program.tensors.items()
    }
    program = replace(program, tensors=tensors, memories=(*program.memories, FAST))
    found = derive(program, rules(), find_order("best"))
    return Compiled(Source.derived(path.name, model_digest(path), found))
