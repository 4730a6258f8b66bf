"""A program: tensors and the steps that compute them, from the importer to the program file.

Importers return this type, rewrites change it, plans are made for it, and the runtime runs it.
Steps are in topological order; a step's number is its index.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Self, TypeAlias

from numpy.typing import NDArray

from arenite.planner.errors import ModelError, OrderError
from arenite.planner.operators.operator import Operands, Operator
from arenite.planner.programs.system import System
from arenite.planner.sizes import Dimension
from arenite.planner.tensors import Alias, Memory, Tensor, TensorKind


class Names:
    """Names that are in use, and new ones that are not.

    Args:
        taken: Names in use from the start.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._next_number: dict[str, int] = dict.fromkeys(taken, 2)

    def take(self, wanted: str) -> str:
        """Return `wanted`, numbered from 2 if it is in use, and mark it as in use."""
        name = wanted
        while name in self._next_number:
            number = self._next_number[wanted]
            self._next_number[wanted] = number + 1
            name = f"{wanted}.{number}"
        self._next_number[name] = 2
        return name


Array: TypeAlias = NDArray[Any]


COMPUTE = "compute"
"""The lane of the computing steps, which run one after another."""


class OperatorSet(Enum):
    """The set of operators that a program's steps come from."""

    ONNX = "onnx"
    TFLITE = "tflite"
    ARENITE = "arenite"
    """The operators of our own runtime."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operator at its place in the order.

    Attributes:
        name: Unique in the program.
        inputs: Tensor names by position; "" where an optional input is left out.
        outputs: Tensor names by position; "" where an optional output is left out.
        lane: The lane on which it runs. Steps of one lane run one after another, those of
            different lanes may be at work together. A step of another lane than `COMPUTE`
            starts when all computing steps before it are done, and runs beside those after it;
            a later computing step that reads its result waits for it.
        reads: Names of the tensors read, each once, in order of first mention.
        writes: Names of the tensors written, each once: the outputs, then updated states.
    """

    name: str
    operator: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lane: str = COMPUTE
    # Stored, as planning uses them dozens of times.
    reads: tuple[str, ...] = field(init=False, repr=False, compare=False)
    writes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        updated = (self.inputs[position] for position in self.operator.updates)
        object.__setattr__(self, "reads", _present(self.inputs))
        object.__setattr__(self, "writes", _present((*self.outputs, *updated)))


def _present(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output as the caller sees it.

    Attributes:
        name: Name in the model.
        tensor: Name of the tensor that holds it.
        axes: Stored axis i is the caller's axis axes[i]; None if all axes are the same.
    """

    name: str
    tensor: str
    axes: tuple[int, ...] | None = None

    def shape(self, stored: Sequence[int]) -> tuple[int, ...]:
        """Return the caller's shape of a tensor of this stored shape."""
        if self.axes is None:
            return tuple(stored)
        shape = [0] * len(stored)
        for length, axis in zip(stored, self.axes, strict=True):
            shape[axis] = length
        return tuple(shape)


@dataclass(frozen=True, slots=True)
class Program:
    """A model: its tensors, its steps in the order they run, and its boundary.

    Attributes:
        name: Name for display.
        tensors: Tensors by name, in order of first appearance.
        steps: Steps in a topological order.
        inputs: Ports that the caller writes.
        outputs: Ports that the caller reads.
        notes: Decisions made on the way that the user should know about.
        operator_set: The set that the steps' operators belong to.
        constants: Elements of constants by name, as stored. They may be read on demand, and
            some are missing if the model is only to be sized.
        initial: Names in `constants` of the initial values of states, by state; others start
            as zeros.
        memories: Memories that its tensors lie in; scratch lies in the first.
        dimensions: Dimensions that lengths depend on (`arenite.planner.sizes`); none in the
            ordinary case. Shapes then state the highest sizes.
        spans: First and last step of tensors that are needed at steps that do not touch them, by
            tensor. An input with a span is not there before it, an output not after it.
        system: The models that it is made of, one after another; None for a single model.
        caches: Inputs of which an output has all rows and more for the next run, such as past and
            present keys: the name of that output, by the name of the input. Lowered, they are
            states.
        rows: The growing dimension that counts the rows of a state, by state.

    Raises:
        ModelError: A name is missing or used twice, a step reads what is not yet written,
            an alias does not fit the storage it names, nothing waits for a step of another
            lane while it touches a tensor, or a span has no steps.
    """

    name: str
    tensors: Mapping[str, Tensor]
    steps: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    notes: tuple[str, ...] = ()
    operator_set: OperatorSet = OperatorSet.ONNX
    constants: Mapping[str, Array] = field(default_factory=dict, repr=False, compare=False)
    initial: Mapping[str, str] = field(default_factory=dict)
    memories: tuple[Memory, ...] = (Memory(),)
    dimensions: tuple[Dimension, ...] = ()
    spans: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    system: System | None = None
    caches: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)
    _places: dict[str, tuple[str, int]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        self._check_boundary()
        self._check_steps()
        known = {memory.name for memory in self.memories}
        for name, tensor in self.tensors.items():
            if tensor.memory not in known:
                raise ModelError(f"tensor {name!r} lies in an unknown memory, {tensor.memory!r}")
            if tensor.alias is None:
                self._places[name] = (name, 0)
        for name in self.tensors:
            if name not in self._places:
                self._place(name)
        self._check_lanes()
        self._check_spans()

    @classmethod
    def of(
        cls,
        name: str,
        tensors: Iterable[Tensor],
        steps: Iterable[Step],
        inputs: Iterable[str | Port],
        outputs: Iterable[str | Port],
        notes: Iterable[str] = (),
        **more: Any,
    ) -> Self:
        """Build a program from its parts; a tensor name stands for a port of the same name.

        Raises:
            ModelError: Two tensors share a name, or the parts do not fit together.
        """
        by_name: dict[str, Tensor] = {}
        for tensor in tensors:
            if tensor.name in by_name:
                raise ModelError(f"program {name!r}: two tensors are named {tensor.name!r}")
            by_name[tensor.name] = tensor
        return cls(
            name, by_name, tuple(steps), _ports(inputs), _ports(outputs), tuple(notes), **more
        )

    @property
    def input_tensors(self) -> tuple[str, ...]:
        """Names of the tensors that the caller writes, by port."""
        return tuple(port.tensor for port in self.inputs)

    @property
    def output_tensors(self) -> tuple[str, ...]:
        """Names of the tensors that the caller reads, by port."""
        return tuple(port.tensor for port in self.outputs)

    @property
    def state_storages(self) -> frozenset[str]:
        """Storages that are states, or of which states take a part."""
        return frozenset(
            self.root(name)[0]
            for name, tensor in self.tensors.items()
            if tensor.kind is TensorKind.STATE
        )

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of all steps."""
        return sum(step.operator.multiply_adds(self.operands(step)) for step in self.steps)

    def operands(self, step: Step) -> Operands:
        """Return the tensors of a step, by position."""
        tensors = self.tensors
        return Operands(
            tuple(tensors[name] if name else None for name in step.inputs),
            tuple(tensors[name] if name else None for name in step.outputs),
        )

    def numbered_spans(self) -> Mapping[str, tuple[int, int]]:
        """Return the numbers of the first and the last step of each span, by tensor."""
        if not self.spans:
            return {}
        numbers = {step.name: number for number, step in enumerate(self.steps)}
        return {
            name: (numbers[first], numbers[last]) for name, (first, last) in self.spans.items()
        }

    def reordered(self, order: Sequence[str]) -> "Program":
        """Return the program with its steps in the order of these names.

        Raises:
            OrderError: The names are not a permutation of the steps, or a step would read what
                is not yet written, or a state before or after another step writes it.
        """
        by_name = {step.name: step for step in self.steps}
        if len(order) != len(by_name) or set(order) != set(by_name):
            raise OrderError(
                f"program {self.name!r}: the order must name each of its {len(by_name)} steps once"
            )
        steps = tuple(by_name[name] for name in order)
        self._check_states_in(steps)
        try:
            return replace(self, steps=steps)
        except ModelError as error:
            raise OrderError(str(error)) from error

    def _check_states_in(self, order: Sequence[Step]) -> None:
        """Check that each step finds its states as it does now: after the same writes."""
        now, then = (self._writes_before(steps) for steps in (self.steps, order))
        for place, number in now.items():
            if then[place] != number:
                step, state = place
                raise OrderError(
                    f"step {step!r} must run between the same writes of state {state!r} as before"
                )

    def _writes_before(self, order: Sequence[Step]) -> dict[tuple[str, str], int]:
        """Return for each step and each of its states how often it is written before."""
        writes: Counter[str] = Counter()
        storages = self.state_storages
        found: dict[tuple[str, str], int] = {}
        for step in order:
            roots = {self.root(name)[0] for name in (*step.reads, *step.writes)}
            states = roots & storages
            found.update({(step.name, state): writes[state] for state in states})
            writes.update(states & {self.root(name)[0] for name in step.writes})
        return found

    def root(self, name: str) -> tuple[str, int]:
        """Return the tensor in whose storage `name` lies, and the byte it starts at."""
        return self._places[name]

    def _check_boundary(self) -> None:
        for port in (*self.inputs, *self.outputs):
            if port.tensor not in self.tensors:
                raise ModelError(
                    f"program {self.name!r}: boundary tensor {port.tensor!r} is not in it"
                )

    def _check_steps(self) -> None:
        ready = set(self.input_tensors)
        ready.update(
            tensor.name
            for tensor in self.tensors.values()
            if tensor.kind in (TensorKind.CONSTANT, TensorKind.STATE)
        )
        seen: set[str] = set()
        written = set(ready)
        parts = _WrittenParts(self.tensors)
        for name in sorted(ready):
            ready.update(parts.completed_by(name))
        for step in self.steps:
            if step.name in seen:
                raise ModelError(f"program {self.name!r}: two steps are named {step.name!r}")
            seen.add(step.name)
            for name in (*step.reads, *step.writes):
                if name not in self.tensors:
                    raise ModelError(f"step {step.name!r}: tensor {name!r} is not in the program")
            for name in step.reads:
                if not self._is_ready(name, ready):
                    raise ModelError(f"step {step.name!r} reads {name!r} before it is written")
            for name in step.writes:
                if name in written and self.tensors[name].kind is not TensorKind.STATE:
                    raise ModelError(
                        f"step {step.name!r} writes {name!r}, which is written already"
                    )
                written.add(name)
                ready.add(name)
                ready.update(parts.completed_by(name))
        for name in self.output_tensors:
            if not self._is_ready(name, ready):
                raise ModelError(f"program {self.name!r}: output {name!r} is never written")

    def _check_lanes(self) -> None:
        """Check that the tensors of a step of another lane are live until it is done.

        A computing step that waits for it must touch each of its tensors too. Lifetimes then
        need no rule of their own, and the height holds however long the other lane takes.
        """
        if all(step.lane == COMPUTE for step in self.steps):
            return
        untouched: dict[str, set[str]] = {}
        makers: dict[str, str] = {}
        for step in self.steps:
            touched = {self.root(name)[0] for name in (*step.reads, *step.writes)}
            if step.lane != COMPUTE:
                kinds = {name: self.tensors[name].kind for name in touched}
                untouched[step.name] = {
                    name for name, kind in kinds.items() if kind is not TensorKind.CONSTANT
                }
                makers.update(dict.fromkeys(step.writes, step.name))
            elif makers:
                for awaited in {makers[name] for name in step.reads if name in makers}:
                    untouched[awaited] -= touched
        for name, tensors in untouched.items():
            if tensors:
                raise ModelError(
                    f"step {name!r} of another lane uses {min(tensors)!r} after its lifetime; a "
                    f"later computing step must read it and a result of {name!r}"
                )

    def _check_spans(self) -> None:
        numbers = {
            step.name: number for number, step in enumerate(self.steps if self.spans else ())
        }
        for name, (first, last) in self.spans.items():
            if name not in self.tensors:
                raise ModelError(f"a span is of tensor {name!r}, which is not in the program")
            if numbers.get(first, len(numbers)) > numbers.get(last, -1):
                raise ModelError(f"tensor {name!r}: {first!r} to {last!r} is no span of steps")

    def _is_ready(self, name: str, ready: set[str]) -> bool:
        """Tell whether a tensor is written, or a view of one that is."""
        while name not in ready:
            alias = self.tensors[name].alias
            if alias is None or alias.tensor not in self.tensors:
                return False
            name = alias.tensor
        return True

    def _place(self, name: str) -> None:
        """Record in whose storage a tensor and all tensors along its chain of aliases lie.

        Tensors that lie in their own storage are recorded already.

        Cost: O(1) for each tensor not yet recorded.
        """
        chain: dict[str, Alias] = {}
        while name not in self._places:
            tensor = self.tensors[name]
            alias = tensor.alias
            assert alias is not None
            chain[name] = alias
            target = self.tensors.get(alias.tensor)
            if target is None or target.name in chain:
                raise ModelError(
                    f"tensor {next(iter(chain))!r}: its alias leads to {alias.tensor!r}, which is "
                    "not another tensor of the program"
                )
            if alias.offset < 0 or alias.offset + tensor.size > target.size:
                raise ModelError(
                    f"tensor {name!r}: bytes {alias.offset} to {alias.offset + tensor.size} are "
                    f"not inside {target.name!r} ({target.size} B)"
                )
            name = target.name
        for name, alias in reversed(chain.items()):
            root, offset = self._places[alias.tensor]
            self._places[name] = (root, offset + alias.offset)


class _WrittenParts:
    """Which bytes of tensors are written through the tensors that lie in them."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors
        self._written: dict[str, int] = {}
        self._above: dict[str, list[tuple[int, int]]] = {}  # first byte and the one after
        # Tensors that are written, and so are all that they lie in: nothing is left to find there.
        self._finished: set[str] = set()

    def completed_by(self, name: str) -> Iterator[str]:
        """Yield the tensors of which a part was the last that was not written.

        Those that were yielded before are left out where all that they lie in was too.
        """
        alias = self._tensors[name].alias
        seen = {name}  # a circle of aliases is refused once all steps are known
        while alias is not None and alias.tensor in self._tensors and alias.tensor not in seen:
            if alias.tensor in self._finished:
                break
            seen.add(alias.tensor)
            outer, inner = self._tensors[alias.tensor], self._tensors[name]
            above = self._above.setdefault(outer.name, [])
            heapq.heappush(above, (int(alias.offset), int(alias.offset + inner.size)))
            written = self._written.get(outer.name, 0)
            while above and above[0][0] <= written:
                written = max(written, heapq.heappop(above)[1])
            self._written[outer.name] = written
            if written < outer.size:
                return
            yield outer.name
            name, alias = outer.name, outer.alias
        self._finished |= seen


def _ports(given: Iterable[str | Port]) -> tuple[Port, ...]:
    return tuple(Port(each, each) if isinstance(each, str) else each for each in given)
