"""Simulate a run of a program whose steps occupy lanes."""

from collections import Counter

from arenite.planner.programs.costs import Costs
from arenite.planner.programs.program import COMPUTE, Program, Step
from arenite.planner.rewrites.rescheduling import ALIGNMENT, with_views
from arenite.planner.tensors import TensorKind, alignments
from arenite.planner.timing.timeline import Span, Timeline
from arenite.planner.units import align_up


def simulate(program: Program, costs: Costs) -> Timeline:
    """Return the run of a program, its steps as quick as the costs say.

    Steps are issued in their order. A computing step is issued when the one before it is done, a
    step of another lane when all computing steps before it are. Each then waits for its lane and
    for what it reads. Bytes are taken when a step is issued and given back when the last step that
    touches them is done, so that how quick a link is decides about time and never about bytes.

    Cost: O(operands of the steps).
    """
    program = with_views(program)
    memory = _Memory(program)
    free: dict[str, float] = {}
    ready: dict[str, float] = {}
    spans: list[Span] = []
    computed = 0.0
    moved = [0, 0]
    for step in program.steps:
        issued = computed
        memory.enter(step)
        reads = [ready.get(program.root(name)[0], 0.0) for name in step.reads]
        start = max(issued, free.get(step.lane, 0.0), *reads)
        end = start + costs.seconds(program, step)
        free[step.lane] = end
        ready.update((program.root(name)[0], end) for name in step.writes)
        spans.append(Span(step.name, step.lane, issued, start, end))
        if step.lane == COMPUTE:
            computed = end
        memory.leave(step)
        for way, size in enumerate(step.operator.bytes_moved(program.operands(step))):
            moved[way] += size
    return Timeline(tuple(spans), memory.peaks, *moved)


class _Memory:
    """The live storages, by counts of the steps that will still touch them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._alignments = alignments(program.memories, ALIGNMENT)
        self._visits: Counter[str] = Counter()
        for step in program.steps:
            self._visits.update(self._storages(step))
        stays = [program.root(name)[0] for name in program.output_tensors]
        present = [program.root(name)[0] for name in program.input_tensors]
        for tensor in program.tensors.values():
            if tensor.kind is TensorKind.STATE:
                stays.append(program.root(tensor.name)[0])
                present.append(program.root(tensor.name)[0])
        self._visits.update(dict.fromkeys(stays, 1))  # by one that never comes
        self._unread = [name for name in present if not self._visits[name]]
        self._used = dict.fromkeys(self._alignments, 0)
        self._present: set[str] = set()
        for storage in present:
            self._take(storage)
        self.peaks = dict(self._used)

    def enter(self, step: Step) -> None:
        """Take the bytes of a step's storages, and note the peaks while it has its scratch."""
        for storage in self._storages(step):
            self._take(storage)
        workplace = self._program.memories[0].name
        scratch = step.operator.scratch(self._program.operands(step))
        for name, used in self._used.items():
            more = align_up(scratch, self._alignments[name]) if name == workplace else 0
            self.peaks[name] = max(self.peaks[name], used + more)

    def leave(self, step: Step) -> None:
        """Free the bytes of storages that no later step touches."""
        storages = self._storages(step)
        self._visits.subtract(storages)
        for storage in (*storages, *self._unread):
            if not self._visits[storage] and storage in self._present:
                self._present.remove(storage)
                self._used[self._program.tensors[storage].memory] -= self._size(storage)
        self._unread = []  # those take their bytes for the first step only

    def _take(self, storage: str) -> None:
        if storage not in self._present and self._size(storage):
            self._present.add(storage)
            self._used[self._program.tensors[storage].memory] += self._size(storage)

    def _size(self, storage: str) -> int:
        tensor = self._program.tensors[storage]
        if tensor.kind is TensorKind.CONSTANT:
            return 0
        return align_up(tensor.size, self._alignments[tensor.memory])

    def _storages(self, step: Step) -> list[str]:
        names = (*step.reads, *step.writes)
        return list(dict.fromkeys(self._program.root(name)[0] for name in names))
