"""One arena of several models that the interpreters of another runtime run.

Each interpreter has its own part of the plan and knows nothing of the others. Where it places
memory of kernels itself, `held` says which bytes it must leave alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from arenite.pipeline.base.observing import SearchLimits
from arenite.pipeline.base.reading import Reading, read_graph
from arenite.pipeline.systems.apart import place_apart
from arenite.pipeline.systems.checking import check_orders
from arenite.pipeline.systems.description import SystemDescription, SystemFileError
from arenite.pipeline.systems.joining import join, prefixed
from arenite.planner import Plan, Problem, Program, Rules, Strategy, TensorKind, derive


@dataclass(frozen=True, slots=True)
class SharedArena:
    """The arena of a system.

    Attributes:
        program: All models, one after another.
        problem: Their records.
        plan: The offsets, with the proof.
    """

    program: Program
    problem: Problem
    plan: Plan

    @property
    def copied(self) -> int:
        """Bytes of the outputs that are handed on or kept: what separate plans must copy."""
        assert self.program.system is not None
        stages = self.program.system.stages
        names = {name for stage in stages for name in (*stage.reads, *stage.keeps)}
        ports = (port for port in self.program.outputs if port.name in names)
        return sum(int(self.program.tensors[port.tensor].size) for port in ports)

    def places(self, model: str) -> dict[str, int]:
        """Return the offset of each tensor of a model, by the name that it has there."""
        return {
            tensor.removeprefix(f"{model}/"): offset + int(self.program.root(tensor)[1])
            for record, offset in zip(self.problem.records, self.plan.offsets, strict=True)
            for tensor in record.tensors
            if tensor.startswith(f"{model}/")
        }

    def held(self, model: str) -> list[range]:
        """Return bytes that a run of a model must leave alone, though its interpreter sees no use.

        They are outputs of other models, and inputs that later ones read, too.
        """
        steps = self._steps_of(model)
        outputs = {port.tensor for port in self.program.outputs}
        found: list[range] = []
        for record, offset in zip(self.problem.records, self.plan.offsets, strict=True):
            own = [each for each in record.tensors if each.startswith(f"{model}/")]
            is_live = record.start < steps.stop and steps.start < record.end
            is_known = not outputs.isdisjoint(own) or (own and record.end <= steps.stop)
            if record.tensors and is_live and not is_known:
                found.append(range(offset, offset + record.size))
        return list(_merged(found))

    def _steps_of(self, model: str) -> range:
        assert self.program.system is not None
        begun = 0
        for stage in self.program.system.stages:
            if stage.name == model:
                return range(begun, begun + stage.num_steps)
            begun += stage.num_steps
        raise KeyError(model)


def join_models(system: SystemDescription, programs: Mapping[str, Program]) -> Program:
    """Return the program of a system, as the interpreters of its models run them.

    Args:
        system: Its description.
        programs: Each model, its states in the arena or not.

    Raises:
        SystemFileError: The models do not fit together.
    """
    ends = (end for each in system.connections for end in (each.source, each.target))
    connected = {end.partition(".")[0] for end in ends}
    models = {}
    for name, program in programs.items():
        own = _without_states(program)
        if name in connected:
            own = _with_quantisation(own, system.models[name].path)
        models[name] = prefixed(own, name)
    return join(system, models)


def share_arena(
    joined: Program, rules: Rules, strategy: Strategy, limits: SearchLimits
) -> SharedArena:
    """Return the arena of a system, checked for every order that the schedule allows.

    Args:
        joined: The program of the system.
        rules: How the interpreters count memory.
        strategy: Places the records.
        limits: Of the search.

    Raises:
        PlanError: There is no plan, or a model may overwrite what another needs.
    """
    derivation = derive(joined, rules)
    problem = derivation.problem
    plan = place_apart(strategy, derivation.program, problem, limits).plan
    check_orders(derivation.program, problem, plan)
    return SharedArena(derivation.program, problem, plan)


def check_as_in_file(system: SystemDescription, runtime: str) -> None:
    """Check that models run as their files have them, in one memory.

    Args:
        system: The description.
        runtime: Name of the runtime, for the message.

    Raises:
        SystemFileError: One has other sizes, weights that are streamed, or a stream, or there
            are memories.
    """
    if system.memories:
        raise SystemFileError(f"{runtime} has one arena; leave out memories")
    for name, model in system.models.items():
        stated = {
            "dims": model.dims, "shapes": model.shapes, "values": model.values,
            "weights": model.weights, "axis": model.hops,
        }  # fmt: skip
        for key, value in stated.items():
            if value:
                raise SystemFileError(
                    f"model {name!r} has {key}: {runtime} runs a model as its file has it; "
                    f"leave out {key}"
                )


def _without_states(program: Program) -> Program:
    """Return a program without its states, which interpreters keep outside the arena."""
    states = {
        name
        for name in program.tensors
        if program.tensors[program.root(name)[0]].kind is TensorKind.STATE
    }
    if not states:
        return program
    steps = tuple(
        replace(
            step,
            inputs=tuple("" if name in states else name for name in step.inputs),
            outputs=tuple("" if name in states else name for name in step.outputs),
        )
        for step in program.steps
    )
    tensors = {name: each for name, each in program.tensors.items() if name not in states}
    return replace(program, tensors=tensors, steps=steps, initial={})


def _with_quantisation(program: Program, path: Path) -> Program:
    """Return a program whose inputs and outputs state their quantisation, as the file does."""
    graph = read_graph(path, Reading())
    tensors = dict(program.tensors)
    for ports, stated in ((program.inputs, graph.inputs), (program.outputs, graph.outputs)):
        known = {port.name: graph.tensors[port.tensor].quantisation for port in stated}
        for port in ports:
            own = tensors[port.tensor]
            tensors[port.tensor] = replace(own, quantisation=known.get(port.name))
    return replace(program, tensors=tensors)


def _merged(ranges: list[range]) -> Iterator[range]:
    """Yield ranges of bytes in order, those that touch as one."""
    begun: range | None = None
    for each in sorted(ranges, key=lambda each: (each.start, each.stop)):
        if begun is not None and each.start <= begun.stop:
            begun = range(begun.start, max(begun.stop, each.stop))
            continue
        if begun is not None:
            yield begun
        begun = each
    if begun is not None:
        yield begun
