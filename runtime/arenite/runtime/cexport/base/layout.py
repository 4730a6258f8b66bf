"""Where an exported program keeps its tensors, its constants and what callers see of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice

import numpy as np

from arenite.planner import Array, Plan, Port, Problem, Program, Tensor, TensorKind
from arenite.planner.programs import Section, Stage
from arenite.planner.sizes import Dimension, Expression, Sizes, at, depends
from arenite.runtime.cexport.base.orders import Orders, in_each_order
from arenite.runtime.cexport.base.text import TYPES, distinct
from arenite.runtime.operators.movement import LoadWeights


@dataclass(frozen=True, slots=True)
class CMemory:
    """Memory that the caller hands a run: one of several, or that of an input or output.

    Attributes:
        name: In C.
        begin: Where it begins among the bytes of all, one memory behind the other.
        size: Bytes.
        alignment: Of its first byte, in bytes.
        region: Name of the memory of the board; "" for a single arena, an input or an output.
        is_port: Whether it is that of an input or output.
    """

    name: str
    begin: int
    size: int
    alignment: int
    region: str = ""
    is_port: bool = False


@dataclass(frozen=True, slots=True)
class ArenaLayout:
    """A program and the bytes that its tensors take.

    Attributes:
        program: The program, its storage shared.
        offsets: First byte of each storage, by the name of its record.
        height: Bytes of the arena.
        shifted: Tensors of bytes without a sign in the model, here stored less 128.
        rows: First byte of each row of the tensors whose rows lie at places of their own.
        has_tables: Whether kernels take rows that may have such places.
        working: First byte of the working memory of steps that have some, by their number.
        counts: The dimension that a step counts and its name in C, by the name of the step.
        memories: What the caller hands a run, if that is more than an arena.
        windows: Names of the weights that a run brings into the arena, by the tensor there.
    """

    program: Program
    offsets: Mapping[str, int]
    height: int
    shifted: frozenset[str] = frozenset()
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    has_tables: bool = False
    working: Mapping[int, int] = field(default_factory=dict)
    counts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    memories: tuple[CMemory, ...] = ()
    windows: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, program: Program, problem: Problem, plan: Plan, shifted: frozenset[str],
        alignment: int = 1,
    ) -> "ArenaLayout":  # fmt: skip
        memories = _memories(program, problem, plan, alignment)
        begins = {memory.name: memory.begin for memory in memories if not memory.is_port}
        records = tuple(
            (record, begins.get(record.memory, 0) + offset)
            for record, offset in zip(problem.records, plan.offsets, strict=True)
        )
        offsets = {record.name: offset for record, offset in records}
        offsets |= {memory.name: memory.begin for memory in memories if memory.is_port}
        # Records without tensors are the working memory of one step.
        working = {record.start: offset for record, offset in records if not record.tensors}
        return cls(
            program, offsets, plan.height, shifted, working=working,
            memories=_named(program, memories), windows=_windows(program),
        )  # fmt: skip

    def with_rows(
        self, tensors: Mapping[str, Tensor], rows: Mapping[str, tuple[int, ...]]
    ) -> "ArenaLayout":
        """Return the layout with tensors that are not in the program, but rows of them are."""
        program = replace(self.program, tensors={**tensors, **self.program.tensors})
        return replace(self, program=program, rows=rows)

    def is_constant(self, name: str) -> bool:
        """Tell whether a tensor lies among the weights, not in the arena."""
        root, _ = self.program.root(name)
        return self.program.tensors[root].kind is TensorKind.CONSTANT

    def is_weights(self, name: str) -> bool:
        """Tell whether a tensor lies among the weights, or is a window with some."""
        return name in self.windows or self.is_constant(name)

    def offset(self, name: str) -> int:
        """Return the first byte of a tensor in the arena.

        An empty tensor takes no byte, and lies nowhere in particular.
        """
        root, inside = self.program.root(name)
        if self.program.tensors[name].size == 0:
            return 0
        return self.offsets[root] + inside

    def memory(self, offset: int) -> CMemory | None:
        """Return which of several memories a byte lies in, None if there is an arena only."""
        return max(
            (each for each in self.memories if each.begin <= offset),
            key=lambda each: each.begin,
            default=None,
        )

    def at(self, offset: int) -> str:
        """Return the address of a byte as C has it."""
        memory = self.memory(offset)
        if memory is None:
            return f"arena + {offset}"
        return f"arena->{memory.name} + {offset - memory.begin}"

    def states(self, steps: range | None = None) -> tuple[str, ...]:
        """Return the names of the states that steps touch, by default all of the program."""
        tensors = self.program.tensors
        names = [name for name, each in tensors.items() if each.kind is TensorKind.STATE]
        if steps is None:
            return tuple(names)
        some = self.program.steps[steps.start : steps.stop]
        touched = {self.program.root(n)[0] for each in some for n in (*each.reads, *each.writes)}
        return tuple(name for name in names if name in touched)


def _windows(program: Program) -> dict[str, str]:
    return {
        step.outputs[0]: step.inputs[0]
        for step in program.steps
        if isinstance(step.operator, LoadWeights)
    }


def _memories(
    program: Program, problem: Problem, plan: Plan, alignment: int
) -> tuple[CMemory, ...]:
    """Return the memories that records lie in, and one for each tensor that the caller keeps.

    The names are those of the model; () for a single arena.
    """
    outside = _outside(program, problem)
    if len(problem.memories) == 1 and not outside:
        return ()
    is_one = len(problem.memories) == 1
    found = [
        CMemory(memory.name, 0, height, alignment, "" if is_one else memory.name)
        for memory, height in zip(problem.memories, plan.heights, strict=True)
        if height
    ]
    for name in outside:
        tensor = program.tensors[name]
        least = max(1, tensor.dtype.bits // 8)
        found.append(CMemory(name, 0, tensor.size, least, is_port=True))
    begins = accumulate((each.size for each in found), initial=0)
    return tuple(replace(each, begin=begin) for each, begin in zip(found, begins, strict=False))


def _outside(program: Program, problem: Problem) -> list[str]:
    """Return the inputs and outputs that lie in no record: the caller keeps them."""
    records = {record.name for record in problem.records}
    roots = [program.root(port.tensor)[0] for port in (*program.inputs, *program.outputs)]
    return [
        name
        for name in dict.fromkeys(roots)
        if name not in records
        and program.tensors[name].kind is not TensorKind.CONSTANT
        and program.tensors[name].size
    ]


def _named(program: Program, memories: Sequence[CMemory]) -> tuple[CMemory, ...]:
    """Return memories with names of C: those of tensors have the names of their ports."""
    ports = {
        program.root(port.tensor)[0]: f"{kind}_{port.name}"
        for kind, group in (("output", program.outputs), ("input", program.inputs))
        for port in group
    }
    wanted = (ports[each.name] if each.is_port else each.name for each in memories)
    return tuple(
        replace(each, name=name)
        for each, name in zip(memories, distinct(wanted, "memory"), strict=True)
    )


@dataclass(slots=True)
class FlashConstants:
    """Arrays by name, in the order in which steps ask for them.

    Attributes:
        prefix: Of every name.
        orders: What some of them are instead for instruction sets that read another order.
    """

    prefix: str
    arrays: dict[str, Array] = field(default_factory=dict)
    orders: dict[str, Orders] = field(default_factory=dict)
    _known: dict[tuple[str, tuple[bytes, ...]], str] = field(default_factory=dict)

    def add(self, array: Array, hint: str, orders: Orders | None = None) -> str:
        """Return the name of an array, that of an equal one if there is one already.

        Args:
            array: Its elements; it may not be empty.
            hint: What it is, as part of its name.
            orders: What it is instead for some instruction sets, of the same type and size.
        """
        array = np.ascontiguousarray(array)
        own = array.tobytes()
        others = {each: other for each, other in (orders or {}).items() if other.tobytes() != own}
        key = array.dtype.name, tuple(x.tobytes() for x in in_each_order(array, others))
        if key not in self._known:
            name = f"{self.prefix}_{hint}"
            number = 1
            while name in self.arrays:
                number += 1
                name = f"{self.prefix}_{hint}_{number}"
            self._known[key] = name
            self.arrays[name] = array
            if others:
                for other in others.values():
                    assert (other.dtype, other.nbytes) == (array.dtype, array.nbytes)
                self.orders[name] = others
        return self._known[key]

    @property
    def num_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())


@dataclass(frozen=True, slots=True)
class CPort:
    """An input or an output.

    Attributes:
        port: The model's.
        tensor: The tensor that holds it.
        name: In C.
        offset: First byte in the arena; a size where it depends on those of the run.
        shape: Its lengths as sizes where they depend on those of the run, else ().
        is_counted: Whether they depend on what a run counts.
        is_moved: Whether its place depends on sizes.
        base: What the offset counts from.
    """

    port: Port
    tensor: Tensor
    name: str
    offset: int
    shape: tuple[int, ...] = ()
    is_counted: bool = False
    is_moved: bool = False
    base: str = "arena"

    @property
    def c_type(self) -> str:
        return TYPES[self.tensor.dtype.label]

    def at(self, sizes: Sizes) -> "CPort":
        """Return the port at some sizes; it still tells whether its place depends on them."""
        shape = tuple(at(each, sizes) for each in self.shape or self.tensor.shape)
        tensor = replace(self.tensor, shape=shape)
        return replace(self, tensor=tensor, offset=at(self.offset, sizes))


@dataclass(frozen=True, slots=True)
class Interface:
    """What callers see of a model.

    Attributes:
        name: Prefix of functions; that of macros is the same in capital letters.
        inputs: What the caller writes before each run.
        outputs: What the caller reads after it.
        arena_bytes: Bytes of the arena.
        alignment: Of the arena, in bytes.
        states: Names of the tensors that are kept from one run to the next.
        steps: Its steps among those of the program.
        dimensions: Those that the sizes of a run of it depend on, the counted ones last; tensors
            are at the highest sizes.
        sizes: Values of the dimensions where tensors are at other sizes.
        stage: Which model of a system it is; None for a single model.
        memories: What the caller hands a run, if that is more than an arena.
        component: Prefix of the names of all models of the export.
    """

    name: str
    inputs: tuple[CPort, ...]
    outputs: tuple[CPort, ...]
    arena_bytes: int
    alignment: int
    states: tuple[str, ...]
    steps: range
    dimensions: tuple[Dimension, ...] = ()
    sizes: Sizes = field(default_factory=dict)
    stage: Stage | None = None
    memories: tuple[CMemory, ...] = ()
    component: str = ""

    @classmethod
    def of(cls, name: str, layout: ArenaLayout, alignment: int) -> "Interface":
        """Return the interface of a program."""
        program = layout.program
        return cls(
            name,
            _ports(program, layout, program.inputs, "input"),
            _ports(program, layout, program.outputs, "output"),
            layout.height,
            alignment,
            layout.states(),
            range(len(program.steps)),
            program.dimensions,
            memories=layout.memories,
            component=name,
        )

    @classmethod
    def alone(cls, program: Program) -> "Interface":
        """Return the interface of a program that has no plan: its ports lie nowhere."""
        return cls.of("", ArenaLayout(program, dict.fromkeys(program.tensors, 0), 0), 1)

    @property
    def has_states(self) -> bool:
        """Whether something is kept from one run to the next."""
        return bool(self.states)

    @property
    def num_steps(self) -> int:
        """Number of steps."""
        return len(self.steps)

    @property
    def kept(self) -> tuple[CPort, ...]:
        """The outputs that stay until the schedule of the system ends."""
        if self.stage is None:
            return ()
        keeps = {name.removeprefix(f"{self.stage.name}.") for name in self.stage.keeps}
        return tuple(port for port in self.outputs if port.port.name in keeps)

    def at(self, sizes: Sizes) -> "Interface":
        """Return the interface at some sizes of its range."""
        inputs, outputs = (
            tuple(each.at(sizes) for each in ports) for ports in (self.inputs, self.outputs)
        )
        return replace(self, inputs=inputs, outputs=outputs, sizes=sizes)

    @property
    def macro(self) -> str:
        """Prefix of macros."""
        return self.name.upper()

    @property
    def arena_parameter(self) -> str:
        """The declaration of the first argument of all functions."""
        return f"const {self.component}_memories *arena" if self.memories else "uint8_t *arena"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the dimensions in C."""
        taken = "arena", "dims"
        prefix = "" if self.stage is None else f"{self.stage.name}."
        names = (each.name.removeprefix(prefix) for each in self.dimensions)
        return distinct([*taken, *names], "size")[len(taken) :]

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the dimensions in NAME.c, where kernels may have those of `parameters`."""
        return tuple(f"n_{each}" for each in self.parameters)

    @property
    def given(self) -> dict[str, str]:
        """Names in C of the dimensions that the caller sets, by their own."""
        return {
            dimension.name: name
            for dimension, name in zip(self.dimensions, self.parameters, strict=True)
            if not dimension.counted_by
        }

    @property
    def arguments(self) -> tuple[str, ...]:
        """What callers hand a run behind the arena: sizes, and where it puts its counts."""
        return tuple(
            f"&{name}" if dimension.counted_by else name
            for dimension, name in zip(self.dimensions, self.parameters, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Component:
    """What callers see of an export: a model, or the models of a system in one arena.

    Attributes:
        name: Prefix of every name in C.
        models: One model, or those of a system in the order of their steps.
        schedule: Which orders the models of a system may run in; None for a single model.
    """

    name: str
    models: tuple[Interface, ...]
    schedule: Section | None = None

    @classmethod
    def of(cls, name: str, layout: ArenaLayout, alignment: int) -> "Component":
        """Return the component of a program; `alignment` is that of the arena, in bytes."""
        whole, system = Interface.of(name, layout, alignment), layout.program.system
        if system is None:
            return cls(name, (whole,))
        return cls(name, tuple(_stages(layout, whole, system.stages)), system.schedule)

    @property
    def macro(self) -> str:
        """Prefix of macros."""
        return self.name.upper()

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena."""
        return self.models[0].arena_bytes

    @property
    def alignment(self) -> int:
        """Of the arena, in bytes."""
        return self.models[0].alignment

    @property
    def memories(self) -> tuple[CMemory, ...]:
        """What the caller hands a run, if that is more than an arena."""
        return self.models[0].memories

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Those of all models, each once."""
        return tuple(dict.fromkeys(d for model in self.models for d in model.dimensions))

    @property
    def num_steps(self) -> int:
        """Number of steps of all models."""
        return sum(each.num_steps for each in self.models)


def _stages(layout: ArenaLayout, whole: Interface, stages: Sequence[Stage]) -> Iterator[Interface]:
    """Yield the interface of each model of a system."""
    program = layout.program
    names = distinct((stage.name for stage in stages), "model")
    begun, inputs, outputs = 0, iter(program.inputs), iter(program.outputs)
    for stage, name in zip(stages, names, strict=True):
        steps = range(begun, begun + stage.num_steps)
        begun = steps.stop
        its_inputs, its_outputs = (
            tuple(
                replace(port, name=port.name.removeprefix(f"{stage.name}."))
                for port in islice(ports, count)
            )
            for ports, count in ((inputs, stage.num_inputs), (outputs, stage.num_outputs))
        )
        yield replace(
            whole,
            name=f"{whole.name}_{name}",
            inputs=_ports(program, layout, its_inputs, "input"),
            outputs=_ports(program, layout, its_outputs, "output"),
            states=layout.states(steps),
            steps=steps,
            dimensions=_dimensions(program, steps, (*its_inputs, *its_outputs)),
            stage=stage,
        )


def _dimensions(program: Program, steps: range, ports: Sequence[Port]) -> tuple[Dimension, ...]:
    """Return the dimensions that the sizes of some steps and ports depend on."""
    some = program.steps[steps.start : steps.stop]
    named = {name for step in some for name in (*step.reads, *step.writes)}
    named.update(port.tensor for port in ports)
    lengths = [each for name in named for each in program.tensors[name].shape if depends(each)]
    names = {name for each in lengths for name in Expression.of(each).names}
    return tuple(each for each in program.dimensions if each.name in names)


def _ports(
    program: Program, layout: ArenaLayout, ports: tuple[Port, ...], otherwise: str
) -> tuple[CPort, ...]:
    names = distinct((port.name for port in ports), otherwise)
    found = []
    for port, name in zip(ports, names, strict=True):
        tensor, offset = program.tensors[port.tensor], layout.offset(port.tensor)
        made = CPort(port, tensor, name, offset, is_moved=depends(offset))
        if (memory := layout.memory(offset)) is not None:
            base = f"arena->{memory.name}"
            made = replace(made, offset=offset - memory.begin, base=base)
        if any(map(depends, tensor.shape)):
            highest = replace(tensor, shape=tuple(map(int, tensor.shape)))
            counted = {each.name for each in program.dimensions if each.counted_by}
            is_counted = any(counted & Expression.of(each).names for each in tensor.shape)
            made = replace(made, tensor=highest, shape=tensor.shape, is_counted=is_counted)
        found.append(made)
    return tuple(found)
