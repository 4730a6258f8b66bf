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
from arenite.pipeline.systems.apart import place_apart
from arenite.pipeline.systems.banding import PlacedModels, in_bands
from arenite.pipeline.systems.checking import check_orders
from arenite.pipeline.systems.description import SystemDescription, SystemModel
from arenite.pipeline.systems.joining import join, prefixed
from arenite.pipeline.systems.planning import about_weights, check_for_memories, digest_of
from arenite.pipeline.targets.c import in_order, lower_model_for_c
from arenite.planner import Program, Rules, derive
from arenite.planner.errors import about_file
from arenite.planner.programs import Port, SectionKind
from arenite.runtime.cexport import (
    Interface,
    LoweredForC,
    Rounding,
    Vectors,
    check_folder,
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
    with about_file(request.model):
        return _written(request, SystemDescription.read(request.model))


def _written(request: CRequest, system: SystemDescription) -> ExportedC:
    request = replace(request, memories=request.memories or system.memories)
    request.check()
    check_folder(request.folder, *system.paths)
    if request.memories:
        check_for_memories(system)
    _check_fetches(system)
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
        if dimensions := whole.lowered.program.dimensions:
            raise OptionsError(f"memories take one size: {dimensions[0]} is a range")
        spread, outcome, _ = spread_over(
            compiled.source, request.memories, request.strategy, request.reading.limits
        )
        compiled, plan = replace(compiled, source=spread), outcome.plan
    check_orders(compiled.program, compiled.source.problem, plan)
    rounding = whole.lowered.rounding
    references = _References(request, system, models, rounding)
    return write_planned_c(request, compiled, plan, rounding, references.of)


def _check_fetches(system: SystemDescription) -> None:
    """Check that weights are fetched one at a time.

    Raises:
        OptionsError: Models that may run at once fetch them.
    """
    for section in system.schedule.sections():
        if section.kind is SectionKind.AT_ONCE:
            fetching = [
                next((name for name in names if system.models[name].weights is not None), None)
                for part in section.parts
                for names in ((part,) if isinstance(part, str) else tuple(part.stages()),)
            ]
            found = [name for name in fetching if name is not None]
            if len(found) > 1:
                raise OptionsError(
                    f"{found[0]!r} and {found[1]!r} run at_once and both have weights: C source "
                    "fetches weights of one model at a time; leave out those of one"
                )


def _lowered(request: CRequest, name: str, model: SystemModel) -> _Model:
    stated = request.reading
    reading = Reading(
        model.dims, model.shapes, model.values, hops=model.hops, alignment=stated.alignment,
        weight_budget=model.weights, limits=stated.limits,
    )  # fmt: skip
    own = lower_model_for_c(model.path, reading)
    alone = replace(request, reading=reading)
    with about_weights(name, model):
        if model.weights is not None:
            alone.check()
        kernels = alone.for_kernels(own)
    order = [step.name for step in in_order(reading, kernels).program.steps]
    lowered = replace(
        kernels, program=prefixed(kernels.program, name),
        shifted=frozenset(f"{name}/{each}" for each in kernels.shifted),
    )  # fmt: skip
    return _Model(model, own, lowered, prefixed(kernels.program.reordered(order), name))


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
