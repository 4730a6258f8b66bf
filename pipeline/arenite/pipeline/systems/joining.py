"""Models joined into one program, whose tensors live as long as the schedule may need them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arenite.pipeline.systems.description import Connection, SystemDescription, SystemFileError
from arenite.planner import Alias, Array, Port, Program, Step, Tensor, TensorKind
from arenite.planner.programs import Section, SectionKind, Stage, System
from arenite.planner.sizes import depends
from arenite.runtime.operators import Copy, Move

_LASTING = (TensorKind.STATE, TensorKind.CONSTANT)


def prefixed(program: Program, model: str) -> Program:
    """Return a program whose steps, tensors and ports have the name of a model before theirs.

    Args:
        program: A lowered program, none of whose steps runs in bands yet.
    """

    def named(name: str) -> str:
        return f"{model}/{name}" if name else ""

    def tensor(each: Tensor) -> Tensor:
        alias = each.alias
        inside = None if alias is None else replace(alias, tensor=named(alias.tensor))
        return replace(each, name=named(each.name), alias=inside)

    def step(each: Step) -> Step:
        return replace(
            each, name=named(each.name), inputs=tuple(map(named, each.inputs)),
            outputs=tuple(map(named, each.outputs)),
        )  # fmt: skip

    def port(each: Port) -> Port:
        return replace(each, name=f"{model}.{each.name}", tensor=named(each.tensor))

    return replace(
        program,
        tensors={named(name): tensor(each) for name, each in program.tensors.items()},
        steps=tuple(map(step, program.steps)),
        inputs=tuple(map(port, program.inputs)),
        outputs=tuple(map(port, program.outputs)),
        constants=_Prefixed(program.constants, f"{model}/"),
        initial={named(name): named(each) for name, each in program.initial.items()},
    )


def join(description: SystemDescription, programs: Mapping[str, Program]) -> Program:
    """Return the program of a system.

    Args:
        description: The system.
        programs: The program of each model, prefixed, in its final order, no storage shared.

    Raises:
        SystemFileError: What is connected or kept does not exist, or does not fit.
    """
    return _Joining(description, programs).program()


class _Joining:
    def __init__(self, description: SystemDescription, programs: Mapping[str, Program]) -> None:
        self._description = description
        self._programs = programs
        self._names = list(description.models)
        self._outputs = {
            port.name: port for program in programs.values() for port in program.outputs
        }
        self._inputs = {
            port.name: port for program in programs.values() for port in program.inputs
        }
        self._sources: dict[str, str] = {}  # outputs by the input that they are
        self._copies: dict[str, list[Step]] = {name: [] for name in self._names}
        self._why_copied: dict[str, str] = {}  # by the step that copies
        self._tensors = {
            key: tensor for name in self._names for key, tensor in programs[name].tensors.items()
        }
        for each in description.connections:
            self._connect(each, *self._connected(each))
        self._stages_of: dict[str, range] = {}
        begun = 0
        for name in self._names:
            count = len(self._copies[name]) + len(programs[name].steps)
            counted = [str(each) for each in programs[name].dimensions if each.counted_by]
            if counted:
                raise SystemFileError(
                    f"model {name!r} has sizes that a run counts, {', '.join(counted)}: "
                    "unsupported in a system"
                )
            if not programs[name].steps:
                raise SystemFileError(f"model {name!r} has no step that runs")
            self._stages_of[name] = range(begun, begun + count)
            begun += count

    def program(self) -> Program:
        tensors = self._tensors
        steps = [
            step
            for name in self._names
            for step in (*self._copies[name], *self._programs[name].steps)
        ]
        stages = tuple(map(self._stage, self._names))
        numbered = [step.name for step in steps]
        first = self._programs[self._names[0]]
        programs = [self._programs[name] for name in self._names]
        return Program(
            self._description.name,
            tensors,
            tuple(steps),
            tuple(
                port
                for program in programs
                for port in program.inputs
                if port.name not in self._sources
            ),
            tuple(port for program in programs for port in program.outputs),
            (
                *dict.fromkeys(note for program in programs for note in program.notes),
                *(
                    f"{step.name}, as {self._why_copied[step.name]}"
                    for copies in self._copies.values()
                    for step in copies
                ),
            ),
            first.operator_set,
            _Chained([program.constants for program in programs]),
            {name: each for program in programs for name, each in program.initial.items()},
            spans={
                name: (numbered[span.start], numbered[span.stop - 1])
                for name, span in self._spans(tensors).items()
            },
            dimensions=tuple(each for program in programs for each in program.dimensions),
            system=System(stages, self._description.schedule),
        )

    def _connect(self, connection: Connection, port: Port, output: Port) -> None:
        """Let an input lie where an output does.

        It is copied if its axes are in another order, or older rows of a stream lie before it.
        """
        self._sources[connection.target] = connection.source
        inner, outer = self._tensors[port.tensor], self._tensors[output.tensor]
        alias = inner.alias
        if port.axes == output.axes and alias is None:
            alias = Alias(outer.name)
        else:
            step = Step(
                f"copy of {connection.source} for {connection.target}",
                Copy(moves=(_move(output, outer, port, inner),)),
                (outer.name,),
                (inner.name,),
            )
            self._copies[_model_of(port.name)].append(step)
            self._why_copied[step.name] = (
                "their axes are stored in different orders"
                if port.axes != output.axes
                else "it lies behind older rows of the stream"
            )
        self._tensors[inner.name] = replace(inner, kind=TensorKind.ACTIVATION, alias=alias)

    def _connected(self, connection: Connection) -> tuple[Port, Port]:
        """Return an input and the output that it is."""
        what = f"{connection.source!r} cannot feed {connection.target!r}"
        output = self._outputs.get(connection.source)
        if output is None:
            raise SystemFileError(f"{what}: outputs are {', '.join(map(repr, self._outputs))}")
        port = self._inputs.get(connection.target)
        if port is None:
            raise SystemFileError(f"{what}: inputs are {', '.join(map(repr, self._inputs))}")
        source = self._programs[_model_of(output.name)]
        target = self._programs[_model_of(port.name)]
        one, other = source.tensors[output.tensor], target.tensors[port.tensor]
        root = source.tensors[source.root(output.tensor)[0]]
        if root.kind in (*_LASTING, TensorKind.INPUT):
            raise SystemFileError(f"{what}: it is a {root.kind!s} of its model")
        if other.kind is not TensorKind.INPUT:
            raise SystemFileError(f"{what}: the model keeps that input")
        if any(map(depends, (*one.shape, *other.shape))):
            raise SystemFileError(f"{what}: its size differs from run to run; give it one size")
        facts = [
            (_type(one), _shape(output, one), one.quantisation),
            (_type(other), _shape(port, other), other.quantisation),
        ]
        if facts[0] != facts[1]:
            shown = (
                f"{kind} {shape}" + (f", quantised {by}" if by else "")
                for kind, shape, by in facts
            )
            raise SystemFileError(f"{what}: one is {next(shown)}; the other {next(shown)}")
        return port, output

    def _stage(self, name: str) -> Stage:
        program = self._programs[name]
        kept = [f"{name}.{each}" for each in self._description.models[name].keep]
        own = [port.name for port in program.outputs]
        for each in kept:
            if each not in own:
                raise SystemFileError(f"keeps {each!r}; outputs are {', '.join(map(repr, own))}")
        reads = [self._sources[port.name] for port in program.inputs if port.name in self._sources]
        return Stage(
            name,
            len(self._stages_of[name]),
            sum(port.name not in self._sources for port in program.inputs),
            len(program.outputs),
            tuple(dict.fromkeys(reads)),
            tuple(kept),
        )

    def _spans(self, tensors: Mapping[str, Tensor]) -> dict[str, range]:
        """Return the steps at which inputs and outputs are needed, whichever order runs."""
        spans: dict[str, range] = {}

        def extend(tensor: str, steps: range) -> None:
            if tensors[tensor].kind not in _LASTING:
                own = spans.get(tensor, steps)
                spans[tensor] = range(min(own.start, steps.start), max(own.stop, steps.stop))

        for port in self._inputs.values():
            if port.name not in self._sources:
                first = self._stages_of[_model_of(port.name)].start
                extend(port.tensor, range(first, first + 1))
        end = self._stages_of[self._names[-1]].stop
        for port in self._outputs.values():
            model = _model_of(port.name)
            made = self._stages_of[model].stop
            readers = [
                _model_of(target) for target, each in self._sources.items() if each == port.name
            ]
            is_kept = port.name.removeprefix(f"{model}.") in self._description.models[model].keep
            extend(port.tensor, range(made - 1, end if is_kept else made))
            for section in self._description.schedule.sections():
                if section.kind in _REORDERING and _crosses(section, model, readers, is_kept):
                    extend(port.tensor, self._steps_of(section))
        return spans

    def _steps_of(self, section: Section) -> range:
        stages = [self._stages_of[name] for name in section.stages()]
        return range(stages[0].start, stages[-1].stop)


_REORDERING = (SectionKind.REPEAT, SectionKind.ANY_ORDER, SectionKind.AT_ONCE)
"""Sections whose models may run before models that the program has before them."""


def _crosses(section: Section, maker: str, readers: Sequence[str], is_kept: bool) -> bool:
    """Tell whether an output is there before a section, and read in it, or the other way round."""
    inside = set(section.stages())
    among = [reader in inside for reader in readers]
    return (is_kept or not all(among)) if maker in inside else any(among)


def _move(source: Port, given: Tensor, target: Port, made: Tensor) -> Move:
    """Return the move from the order in which one port stores its axes to that of another."""
    axes = [
        range(len(each.shape)) if port.axes is None else port.axes
        for port, each in ((source, given), (target, made))
    ]
    shapes = [tuple(map(int, each.shape)) for each in (given, made)]
    reads, writes = (
        [math.prod(shape[place + 1 :]) for place in range(len(shape))] for shape in shapes
    )
    places = [list(axes[1]).index(axis) for axis in axes[0]]
    return Move(
        shape=shapes[0],
        input_strides=tuple(reads),
        output_strides=tuple(writes[place] for place in places),
    )


def with_operators(unshared: Program, chosen: Program) -> Program:
    """Return a program whose steps have the operators of the steps of another, by their names."""
    operators = {step.name: step.operator for step in chosen.steps}
    steps = tuple(
        replace(step, operator=operators.get(step.name, step.operator)) for step in unshared.steps
    )
    return replace(unshared, steps=steps)


def _model_of(port: str) -> str:
    return port.partition(".")[0]


def _type(tensor: Tensor) -> str:
    return tensor.dtype.label


def _shape(port: Port, tensor: Tensor) -> str:
    return "x".join(map(str, port.shape(tensor.shape))) or "scalar"


@dataclass(frozen=True, slots=True)
class _Prefixed(Mapping[str, Array]):
    """Constants whose names have a prefix; they are read when they are asked for."""

    inner: Mapping[str, Array]
    prefix: str

    def __getitem__(self, name: str) -> Array:
        if not name.startswith(self.prefix):
            raise KeyError(name)
        return self.inner[name.removeprefix(self.prefix)]

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{name}" for name in self.inner)

    def __len__(self) -> int:
        return len(self.inner)


@dataclass(frozen=True, slots=True)
class _Chained(Mapping[str, Array]):
    """Constants of several programs, of different names."""

    inner: Sequence[Mapping[str, Array]]

    def __getitem__(self, name: str) -> Array:
        for each in self.inner:
            if name in each:
                return each[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for each in self.inner for name in each)

    def __len__(self) -> int:
        return sum(map(len, self.inner))
