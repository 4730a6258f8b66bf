"""A schedule in the making, with the load of every slot kept up to date."""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from arenite.planner.rewrites import Schedule, SpillSpan
from arenite.strategies.schedules.work import Work

Loads = npt.NDArray[np.int64]


@dataclass(slots=True)
class Instance:
    """A storage from one production to its last reader before the next.

    Attributes:
        maker: Run that makes it; -1 if it is there from the start.
        readers: Runs that read or update it, in their order.
        spilled: Pairs of successive runs that touch it, between which it is in another memory.
    """

    storage: int
    maker: int
    readers: list[int] = field(default_factory=list)
    spilled: set[tuple[int, int]] = field(default_factory=set)


class Draft:
    """A list of runs of steps; a run keeps its number while runs before it come and go.

    Attributes:
        order: Runs by slot.
        step_of: Step of each run.
        loads: Bytes live at each slot.
        instances: Instances of each storage, in their order.
    """

    def __init__(self, work: Work, slots: Iterable[int] | None = None) -> None:
        """Begin with these steps, each in its slot; by default with the program's own order."""
        self.work = work
        self.step_of = list(range(work.num_steps) if slots is None else slots)
        self.order = list(range(len(self.step_of)))
        self._slot_of = np.arange(2 * len(self.order) + 16)
        self._slots: list[int] = self._slot_of.tolist()  # the same, for single look-ups
        self.instances: list[list[Instance]] = [
            [Instance(storage, -1)] if given else [] for storage, given in enumerate(work.is_given)
        ]
        self._bind()
        self.loads = self._loads()

    @property
    def peak(self) -> int:
        """Most bytes live at any slot."""
        return int(self.loads.max(initial=0))

    @property
    def seconds(self) -> float:
        """Time of all runs."""
        return sum(self.work.seconds[self.step_of[run]] for run in self.order)

    def schedule(self, spills: Iterable[SpillSpan] = ()) -> Schedule:
        numbers = self.work.numbers
        return Schedule(tuple(numbers[self.step_of[run]] for run in self.order), tuple(spills))

    def slot(self, run: int) -> int:
        """Return the slot of a run; -1 stands for the start."""
        return -1 if run < 0 else self._slots[run]

    def slots(self, runs: Sequence[int]) -> Loads:
        """Return the slots of runs; -1 stands for the start."""
        found = np.array(runs, np.int64)
        return np.where(found < 0, -1, self._slot_of[found])

    def start(self, instance: Instance) -> int:
        """Return the first slot at which an instance is live."""
        return max(0, self.slot(instance.maker))

    def end(self, instance: Instance) -> int:
        """Return the last slot at which an instance is live."""
        storage = instance.storage
        if self.work.is_kept[storage] and instance is self.instances[storage][0]:
            return len(self.order) - 1
        return self.slot(instance.readers[-1]) if instance.readers else self.start(instance)

    def seen_from(self, storage: int, slot: int) -> Instance | None:
        """Return the instance that a run inserted before a slot would read, if there is one."""
        instances = self.instances[storage]
        if instances and not self.work.may_leave[storage]:
            return instances[0] if self.slot(instances[0].maker) < slot else None
        for instance in reversed(instances):
            if self.slot(instance.maker) < slot:
                return instance
        return None

    def touches(self, instance: Instance) -> list[int]:
        """Return the slots at which an instance is touched, -1 for the start."""
        return [self.slot(run) for run in (instance.maker, *instance.readers)]

    def is_there(self, instance: Instance, slot: int) -> bool:
        """Tell whether an instance is not spilled at the moment before a slot."""
        return not any(
            self.slot(left) < slot <= self.slot(back) for left, back in instance.spilled
        )

    def carried(
        self, slot: int, among: Iterable[Instance] | None = None
    ) -> list[tuple[Instance, int]]:
        """Return the removable instances that a slot carries, each with its next reader.

        Args:
            among: Candidates, where they are known; by default all removable instances.
        """
        slots = self._slots
        found: list[tuple[Instance, int]] = []
        for instance in self.removable() if among is None else among:
            # Most end before the slot, so this is tested first.
            if not instance.readers or slots[instance.readers[-1]] <= slot:
                continue
            if self.slot(instance.maker) < slot:
                following = next(run for run in instance.readers if self.slot(run) >= slot)
                if self.slot(following) > slot and self.is_there(instance, slot):
                    found.append((instance, following))
        return found

    def removable(self) -> Iterator[Instance]:
        """Yield the instances that may be spilled or recomputed and have bytes, by storage."""
        for storage, instances in enumerate(self.instances):
            if self.work.may_leave[storage] and self.work.sizes[storage]:
                yield from instances

    def before(self, instance: Instance, reader: int) -> int:
        """Return the run that touches an instance before one of its readers."""
        place = instance.readers.index(reader)
        return instance.readers[place - 1] if place else instance.maker

    def _bind(self) -> None:
        """Bind each read to the latest instance."""
        work = self.work
        seen: set[int] = set()
        for run in self.order:
            step = self.step_of[run]
            for storage in work.reads[step]:
                instances = self.instances[storage]
                if not instances:
                    raise ValueError(f"{work.names[storage]!r} is read before it is written")
                instances[-1 if work.may_leave[storage] else 0].readers.append(run)
            for storage in work.writes[step]:
                instances = self.instances[storage]
                if instances and step not in seen and not work.may_leave[storage]:
                    instances[0].readers.append(run)  # one of several writers, or an update
                else:
                    instances.append(Instance(storage, run))
            seen.add(step)

    def _loads(self) -> Loads:
        change = np.zeros(max(1, len(self.order)) + 1, np.int64)
        for instances in self.instances:
            for instance in instances:
                size = self.work.sizes[instance.storage]
                change[self.start(instance)] += size
                change[self.end(instance) + 1] -= size
        loads = np.cumsum(change)[: len(self.order)]
        loads += np.array([self.work.scratch[self.step_of[run]] for run in self.order], np.int64)
        return loads

    # Runs that come and go.

    def with_chain(self, steps: Sequence[int], slot: int) -> Loads:
        """Return the loads if these steps ran, one after another, before a slot."""
        loads, _ = self._inserted(steps, slot)
        return loads

    def insert(self, steps: Sequence[int], slot: int) -> None:
        """Run these steps, one after another, before a slot."""
        self.loads, reads = self._inserted(steps, slot)
        runs = range(len(self.step_of), len(self.step_of) + len(steps))
        rebound = [
            (storage, run, self._later_readers(storage, slot))
            for run, step in zip(runs, steps, strict=True)
            for storage in self.work.writes[step]
        ]
        self.step_of.extend(steps)
        self.order[slot:slot] = runs
        if len(self.step_of) > len(self._slot_of):
            self._slot_of = np.concatenate([self._slot_of, self._slot_of])
        taken = self._slot_of[: runs.start]
        taken[taken >= slot] += len(steps)
        self._slot_of[runs.start : runs.stop] = np.arange(slot, slot + len(steps))
        self._slots = self._slot_of.tolist()
        for storage, run, (old, later) in rebound:
            self._rebind(storage, run, old, later)
        for run, instances in zip(runs, reads, strict=True):
            for storage, outer in instances:
                instance = self._made_by(storage, run) if outer is None else outer
                insort(instance.readers, run, key=self.slot)

    def _made_by(self, storage: int, run: int) -> Instance:
        """Return the latest instance that a run in the same chain made before this one."""
        found = self.seen_from(storage, self.slot(run))
        assert found is not None
        return found

    def _later_readers(self, storage: int, slot: int) -> tuple[Instance | None, list[int]]:
        if not self.work.may_leave[storage]:
            return None, []
        old = self.seen_from(storage, slot)
        if old is None:
            return None, []
        return old, [run for run in old.readers if self.slot(run) >= slot]

    def _rebind(self, storage: int, run: int, old: Instance | None, later: list[int]) -> None:
        made = Instance(storage, run, later)
        if old is not None and later:
            del old.readers[len(old.readers) - len(later) :]
            made.spilled = {gap for gap in old.spilled if gap[0] in later}
            old.spilled = {gap for gap in old.spilled if gap[1] in old.readers}
        instances = self.instances[storage]
        place = len(instances)
        while place and self.slot(instances[place - 1].maker) > self.slot(run):
            place -= 1
        instances.insert(place, made)

    def _inserted(
        self, steps: Sequence[int], slot: int
    ) -> tuple[Loads, list[list[tuple[int, Instance | None]]]]:
        """Return the loads with a chain in place, and which instances each of its runs reads.

        None stands for an instance that an earlier step of the chain makes.
        """
        work, count = self.work, len(steps)
        base = int(self.loads[slot]) - self._born(slot)
        loads = np.concatenate(
            [self.loads[:slot], np.full(count, base, np.int64), self.loads[slot:]]
        )
        reads: list[list[tuple[int, Instance | None]]] = []
        made: dict[int, int] = {}  # by storage, where in the chain
        last_use: dict[int, int] = {}
        extended: dict[int, tuple[Instance, int]] = {}
        for offset, step in enumerate(steps):
            loads[slot + offset] += work.scratch[step]
            found: list[tuple[int, Instance | None]] = []
            for storage in work.reads[step]:
                if storage in made and work.may_leave[storage]:
                    last_use[storage] = offset
                    found.append((storage, None))
                    continue
                instance = self.seen_from(storage, slot)
                if instance is None:
                    raise ValueError(f"{work.names[storage]!r} is not in memory when it is read")
                found.append((storage, instance))
                if self.end(instance) < slot:
                    extended[storage] = (instance, offset)
            reads.append(found)
            for storage in work.writes[step]:
                made[storage] = offset
        for storage, offset in made.items():
            size = work.sizes[storage]
            old, later = self._later_readers(storage, slot)
            if old is not None and later:
                before = [old.maker, *old.readers][-len(later) - 1]
                gone = max(self.slot(before) + 1, 0 if before >= 0 else 1)
                if not any(left == before for left, _ in old.spilled):
                    loads[gone : slot + offset] -= size
                else:  # it was to be fetched for the first of these; now it is recomputed
                    loads[slot + offset : slot + count] += size
            else:
                loads[slot + offset : slot + last_use.get(storage, offset) + 1] += size
        for storage, (instance, offset) in extended.items():
            loads[self.end(instance) + 1 : slot + offset + 1] += work.sizes[storage]
        return loads, reads

    def _born(self, slot: int) -> int:
        """Return the bytes that are live at a slot and neither before it nor in a chain there."""
        step = self.step_of[self.order[slot]]
        born = self.work.scratch[step]
        run = self.order[slot]
        for storage in self.work.writes[step]:
            born += sum(
                self.work.sizes[storage]
                for instance in self.instances[storage]
                if instance.maker == run
            )
        for storage in self.work.reads[step]:
            instance = self.seen_from(storage, slot)
            if instance is not None and any(back == run for _, back in instance.spilled):
                born += self.work.sizes[storage]
        return born

    def without(self, run: int) -> Loads | None:
        """Return the loads if a run were left out; None if it must stay.

        It must if it makes something for the first time, or a spill begins or ends at it.
        """
        work, slot, step = self.work, self.slot(run), self.step_of[run]
        if not work.writes[step]:
            return None
        loads = self.loads.copy()
        loads[slot] -= work.scratch[step]
        for storage in work.writes[step]:
            found = self._around(storage, run)
            if found is None:
                return None
            old, made = found
            if any(left == run for left, _ in made.spilled):
                return None
            size, end, readers = work.sizes[storage], self.end(made), made.readers
            if readers:
                loads[self.end(old) + 1 : slot] += size
            else:
                loads[slot : end + 1] -= size
        for storage in work.reads[step]:
            instance = self._read_by(storage, run)
            if any(run in gap for gap in instance.spilled):
                return None
            if instance.readers[-1] == run and not work.is_kept[storage]:
                before = [instance.maker, *instance.readers][-2]
                begin = max(self.slot(before) + 1, 0 if before >= 0 else 1)
                loads[begin : slot + 1] -= work.sizes[storage]
        return np.delete(loads, slot)

    def remove(self, run: int) -> None:
        """Leave out a run whose results an earlier run makes as well."""
        loads = self.without(run)
        if loads is None:
            raise ValueError("the first run of a step cannot be left out")
        self.loads = loads
        slot, step = self.slot(run), self.step_of[run]
        for storage in self.work.writes[step]:
            found = self._around(storage, run)
            assert found is not None
            old, made = found
            old.readers.extend(made.readers)
            old.spilled |= made.spilled
            self.instances[storage].remove(made)
        for storage in self.work.reads[step]:
            self._read_by(storage, run).readers.remove(run)
        del self.order[slot]
        self._slot_of[self._slot_of > slot] -= 1
        self._slots = self._slot_of.tolist()

    def _around(self, storage: int, run: int) -> tuple[Instance, Instance] | None:
        """Return the instance before that of a run, and its own."""
        instances = self.instances[storage]
        place = next((i for i, instance in enumerate(instances) if instance.maker == run), 0)
        return (instances[place - 1], instances[place]) if place else None

    def _read_by(self, storage: int, run: int) -> Instance:
        return next(each for each in self.instances[storage] if run in each.readers)

    # Spilled tensors.

    def spill(self, instance: Instance, left: int, back: int) -> None:
        """Count an instance as spilled between two successive runs that touch it."""
        instance.spilled.add((left, back))
        first = max(self.slot(left) + 1, 0 if left >= 0 else 1)
        self.loads[first : self.slot(back)] -= self.work.sizes[instance.storage]
