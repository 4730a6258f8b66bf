"""A system as C source: its models in one arena, kernels and equal weights once."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.memories import spread_over
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import (
    CRequest,
    ExportedC,
    bands_for_c,
    outputs_of,
    write_planned_c,
)
from arenite.pipeline.making.schedule_checks import check_stages
from arenite.pipeline.systems.apart import place_apart
from arenite.pipeline.systems.banding import PlacedModels, in_bands
from arenite.pipeline.systems.description import SystemDescription, SystemModel
from arenite.pipeline.systems.joining import join, prefixed
from arenite.pipeline.systems.planning import digest_of
from arenite.pipeline.targets.c import in_order, lower_model_for_c
from arenite.planner import Plan, Problem, Program, Rules, derive
from arenite.planner.placement import Rectangle
from arenite.planner.programs import (
    PlacedRows,
    Port,
    Rows,
    Run,
    SectionKind,
    StageRun,
    run_of,
    stage_runs,
)
from arenite.planner.tensors import TensorKind
from arenite.runtime.cexport import (
    CompiledForC,
    Interface,
    LoweredForC,
    Rounding,
    Vectors,
    rounds,
    vectors,
)


@dataclass(frozen=True, slots=True)
class _Model:
    """A model of a system.

    Attributes:
        stated: As it is described.
        own: As it is lowered alone.
        lowered: As its kernels take it, its names prefixed.
        program: That in its final order, no storage shared.
    """

    stated: SystemModel
    own: LoweredForC
    lowered: LoweredForC
    program: Program


def write_system_c(request: CRequest) -> ExportedC:
    """Write a system as C source and return the export.

    Each model has a function that runs it. Each is planned in the order that it has alone.

    Args:
        request: Its `model` is the description of a system.

    Raises:
        SystemFileError: The models do not fit together.
        OptionsError: An option is for single models, or the models round in different ways.
        ModelError: A model cannot be read, or has no C kernels; nothing is written.
        FailedExportError: Outputs of its test differ, or the test did not run; nothing is written.
        OutputError: The folder cannot be written.
    """
    request.check()
    system = SystemDescription.read(request.model)
    for name, model in system.models.items():
        if model.weights is not None:
            raise OptionsError(
                f"model {name!r} has weights={str(model.weights)!r}: C source of a system "
                "streams none; leave it out"
            )
    models = {name: _lowered(request, name, each) for name, each in system.models.items()}
    whole = _System(request, system, models)
    placed = whole.placed({name: each.program for name, each in models.items()})
    if request.budget is not None:
        size = request.budget.bytes_of(placed.plan.height)
        assert size is not None
        if placed.plan.height > size:
            placed = whole.within(size)
    compiled, plan = whole.lowered.compiled(placed.derivation), placed.plan
    if request.memories:
        _check_for_memories(whole.lowered.program)
        spread, outcome, _ = spread_over(
            compiled.source, request.memories, request.strategy, request.reading.limits
        )
        compiled, plan = replace(compiled, source=spread), outcome.plan
    _check(compiled, plan)
    rounding = whole.lowered.rounding
    references = _References(request, system, models, rounding)
    return write_planned_c(request, compiled, plan, rounding, references.of)


def _lowered(request: CRequest, name: str, model: SystemModel) -> _Model:
    stated = request.reading
    reading = Reading(
        model.dims, model.shapes, model.values, hops=model.hops, alignment=stated.alignment,
        limits=stated.limits,
    )  # fmt: skip
    own = lower_model_for_c(model.path, reading)
    kernels = request.for_kernels(own)
    order = [step.name for step in in_order(reading, kernels).program.steps]
    lowered = replace(
        kernels, program=prefixed(kernels.program, name),
        shifted=frozenset(f"{name}/{each}" for each in kernels.shifted),
    )  # fmt: skip
    return _Model(model, own, lowered, prefixed(kernels.program.reordered(order), name))


def _check_for_memories(program: Program) -> None:
    """Check that the models of a system may lie in several memories.

    Raises:
        OptionsError: They run at once, or have ranges of sizes.
    """
    assert program.system is not None
    if SectionKind.AT_ONCE in {each.kind for each in program.system.schedule.sections()}:
        raise OptionsError("models that run at_once share one memory; leave out --memory")
    if program.dimensions:
        raise OptionsError(f"--memory takes one size: {program.dimensions[0]} is a range")


class _System:
    """All models, joined and placed, whole or in bands of rows."""

    def __init__(
        self, request: CRequest, system: SystemDescription, models: Mapping[str, _Model]
    ) -> None:
        self._request, self._system, self._models = request, system, models
        programs = {name: each.program for name, each in models.items()}
        self.lowered = LoweredForC(
            system.name, digest_of(system), join(system, programs),
            frozenset(name for each in models.values() for name in each.lowered.shifted),
            _rules([each.lowered.rules for each in models.values()]), _rounding(request, models),
        )  # fmt: skip

    def placed(self, programs: Mapping[str, Program], rules: Rules | None = None) -> PlacedModels:
        """Return the models joined and placed."""
        derivation = derive(join(self._system, programs), rules or self.lowered.rules)
        outcome = place_apart(
            self._request.strategy, derivation.program, derivation.problem,
            self._request.reading.limits,
        )  # fmt: skip
        return PlacedModels(derivation, outcome.plan)

    def within(self, size: int) -> PlacedModels:
        """Return the models in bands of rows, so that all fit a budget.

        Raises:
            BandsLimitError: They do not fit.
        """
        with ExitStack() as stack:
            searches = {
                name: stack.enter_context(bands_for_c(self._request, each.lowered))
                for name, each in self._models.items()
            }
            rules = replace(self.lowered.rules_in_bands, outlines=True)
            return in_bands(searches, partial(self.placed, rules=rules), size)


def _rules(found: list[Rules]) -> Rules:
    """Return how the memory of all models is counted: with the sharing that all permit."""
    return replace(
        found[0],
        aliases=tuple(each for each in found[0].aliases if all(each in r.aliases for r in found)),
        alignment=max(each.alignment for each in found),
    )


def _rounding(request: CRequest, models: Mapping[str, _Model]) -> Rounding:
    """Return how products of integers are rounded, in all models.

    Raises:
        OptionsError: The formats of the models round in different ways.
    """
    if request.extension is not None:
        return "double"  # CMSIS-NN has no other
    if request.rounding is not None:
        return request.rounding
    ways = {each.own.rounding: name for name, each in models.items() if rounds(each.own.program)}
    if len(ways) > 1:
        shown = ", ".join(f"{name!r} {way}" for way, name in ways.items())
        raise OptionsError(
            f"the formats of the models round integers in different ways: {shown}; choose one "
            "by --rounding"
        )
    return next(iter(ways), "even")


def _check(compiled: CompiledForC, plan: Plan) -> None:
    """Check the plan for every order that the schedule allows.

    Raises:
        InvalidPlanError: A model may overwrite what another needs.
    """
    program, problem = compiled.program, compiled.source.problem
    assert program.system is not None
    # Results may lie over operands that they consume, so records do not tell what is live.
    everywhere = [
        Rectangle(each.name, each.name, 0, height, 0, len(program.steps))
        for each, height in zip(problem.memories, plan.heights, strict=True)
    ]
    check_stages(_runs(program, problem, plan), everywhere, program.system.schedule)


def _runs(program: Program, problem: Problem, plan: Plan) -> list[StageRun]:
    assert program.system is not None
    states = [name for name, each in program.tensors.items() if each.kind is TensorKind.STATE]
    inputs, outputs = (
        [(port.name, port.tensor) for port in each] for each in (program.inputs, program.outputs)
    )
    whole = _with_working_memory(run_of(program, problem, plan), problem, plan)
    return list(stage_runs(whole, program.system, inputs, outputs, states))


def _with_working_memory(run: Run, problem: Problem, plan: Plan) -> Run:
    """Return a run whose steps write their working memory too: records without tensors."""
    tensors, turns = list(run.tensors), list(run.turns)
    for record, offset in zip(problem.records, plan.offsets, strict=True):
        if not record.tensors:
            tensors.append(PlacedRows(record.name, record.memory, record.size, (offset,)))
            turn = turns[record.start]
            writes = (*turn.writes, Rows(record.name, 0, 1))
            turns[record.start] = replace(turn, writes=writes)
    return replace(run, tensors=tuple(tensors), turns=tuple(turns))


class _References:
    """What the test of the source checks: each model's outputs alone, for what it is handed."""

    def __init__(
        self, request: CRequest, system: SystemDescription, models: Mapping[str, _Model],
        rounding: Rounding,
    ) -> None:  # fmt: skip
        self._request = request
        self._system = system
        self._models = models
        self._rounding = rounding
        self._made: dict[str, list[NDArray[np.generic]]] = {}

    def of(self, interface: Interface) -> Vectors:
        """Return what is checked of the next model."""
        assert interface.stage is not None
        name = interface.stage.name
        model = self._models[name]
        program, reading = (
            model.own.program,
            Reading(
                model.stated.dims, model.stated.shapes, model.stated.values,
                hops=model.stated.hops,
            ),
        )  # fmt: skip
        alone = Interface.alone(program).at(interface.sizes)
        handed = {
            each.target.removeprefix(f"{name}."): self._made[each.source]
            for each in self._system.connections
            if each.target.startswith(f"{name}.")
        }
        found = vectors(
            model.stated.path, program, alone,
            lambda runs: outputs_of(model.stated.path, reading, program, alone, runs),
            rounding=self._rounding, handed=handed,
            is_rewritten=model.stated.hops is not None,
        )  # fmt: skip
        for port in program.outputs:
            self._made[f"{name}.{port.name}"] = [
                _in_axes(port, outputs[port.name]) for outputs in found.outputs
            ]
        return found


def _in_axes(port: Port, stored: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return an output in the model's own axes."""
    return stored if port.axes is None else stored.transpose(np.argsort(port.axes))
