"""Writes a planned program as the files of a C component."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arenite.planner import Plan, Problem, Program, Step, verify
from arenite.planner.operators import Band
from arenite.planner.sizes import depends, highest_sizes, lowest_sizes, same
from arenite.runtime.cexport import kernels, packages
from arenite.runtime.cexport.bands import Turns
from arenite.runtime.cexport.base.errors import NotExportedError, NotWrittenError
from arenite.runtime.cexport.base.layout import ArenaLayout, Component, FlashConstants, Interface
from arenite.runtime.cexport.base.options import COptions, Rounding, Vectors
from arenite.runtime.cexport.base.ranges import SizeVariables, symbolic
from arenite.runtime.cexport.base.text import TYPES, component_name
from arenite.runtime.cexport.check_sizes import check_sizes
from arenite.runtime.cexport.compiled import CompiledForC
from arenite.runtime.cexport.files import serial, source, storage, test_program, weights
from arenite.runtime.cexport.kernels.costs import Work, code_bytes, cycles_of
from arenite.runtime.cexport.steps.cmsis_nn_operators import extension_of
from arenite.runtime.cexport.steps.writer import CFileParts, StepWriter, is_mostly_narrow, writers
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.movement import LoadWeights


@dataclass(frozen=True, slots=True)
class CExport:
    """A model as C source.

    Attributes:
        name: Prefix of its names in C.
        files: What to write, by path in the folder.
        component: What callers see.
        weight_bytes: Bytes of the constants in addressable flash.
        external_bytes: Bytes of the weights that a run fetches.
        estimate: Bytes of code, and cycles of a run.
        coded: Bytes of the weights that a run decodes, and of their codes, by window.
        digest: Of the plan.
        kernels: Names of the kernels in it.
        rounding: How products of integers are rounded.
    """

    name: str
    files: Mapping[str, bytes]
    component: Component
    weight_bytes: int
    digest: str
    kernels: tuple[str, ...]
    rounding: Rounding = "double"
    external_bytes: int = 0
    estimate: source.Estimate = field(default_factory=lambda: source.Estimate(0, None))
    coded: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def interface(self) -> Interface:
        """What callers see of a single model; of a system the first one."""
        return self.component.models[0]

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena."""
        return self.component.arena_bytes


def export_c(
    compiled: CompiledForC,
    plan: Plan,
    options: COptions,
    vectors: Callable[[Interface], Vectors | None] = lambda _: None,
) -> CExport:
    """Return a planned program as C source.

    Args:
        compiled: The program, of one model or of a system.
        plan: A plan of its records.
        options: How it is written.
        vectors: Makes what the test program checks of a model; None for a test without values.

    Raises:
        InvalidPlanError: The plan is not right for the records.
        NotExportedError: There are no C kernels for some steps.
    """
    verify(compiled.source.problem, plan)
    name = options.name or component_name(compiled.source.name.rpartition(".")[0])
    program = symbolic(compiled.program)
    layout = ArenaLayout.of(
        program, compiled.source.problem, plan, compiled.shifted, compiled.alignment
    )
    rounding = options.rounding or compiled.rounding
    constants = compiled.program.constants
    written = CFileParts(
        FlashConstants(name), rounding, is_mostly_narrow(constants.values()),
        is_quick=options.is_quick, is_coded=options.is_coded,
    )  # fmt: skip
    component = Component.of(name, layout, compiled.alignment)
    models = [_written_model(layout, written, each) for each in component.models]
    if program.dimensions:
        check_sizes(_with_rows(layout, written, component.models), written)
    if written.is_coded:
        models = _with_codes(written, models)
    calls = [call for each in models for step in each.steps for call in step.calls]
    calls += written.inner
    code = code_bytes(kernels.bundle(written.kernels), calls, written.layers)
    decoded = sum(size for size, _ in written.coded.sizes.values())
    # How often the programs of loops run is not known.
    cycles = None if written.inner else cycles_of(written.work, decoded)
    estimate = source.Estimate(code, cycles)
    digest = plan_digest(compiled.source.problem, plan)
    about = source.Provenance(
        compiled.source.name, compiled.source.digest, digest, rounding,
        extension_of(compiled.program),
    )  # fmt: skip
    checks = [[(each, vectors(each)) for each in some] for some in _tested(component)]
    files = {
        f"{name}.h": source.header(component, about, written, estimate),
        f"{name}.c": source.text(component, about, layout, written, models),
        **weights.files(name, written.constants, options),
        **weights.external_files(name, written.external),
        **test_program.files(component, checks, is_fetching=written.external.is_used),
        **serial.files(component),
        **storage.files(component),
        **packages.files(component, about.extension, options.version),
    }
    return CExport(
        name,
        {path: _bytes(text) for path, text in files.items()},
        component,
        written.constants.num_bytes,
        digest,
        tuple(sorted(written.kernels)),
        rounding,
        written.external.num_bytes,
        estimate,
        written.coded.sizes,
    )


def _with_codes(written: CFileParts, models: list[source.ModelCalls]) -> list[source.ModelCalls]:
    """Return the calls of models with the places of coded weights, which are known by now."""
    written.coded.finish(written.constants)
    written.layers.append(written.coded.definition)
    return [
        replace(
            model,
            steps=tuple(
                replace(each, calls=tuple(map(written.coded.filled, each.calls)))
                for each in model.steps
            ),
        )
        for model in models
    ]


def _work(layout: ArenaLayout, step: Step, calls: Sequence[str]) -> Iterator[Work]:
    """Yield what a step computes, nothing if it calls no kernel."""
    named = [word for each in calls for word in re.findall(r"\w+(?=\()", each)]
    kernel = next((word for word in named if word in kernels.names()), None)
    if kernel is None or isinstance(step.operator, LoadWeights):
        return
    operands = layout.program.operands(step)
    sizes = [layout.program.tensors[name].num_elements for name in (*step.reads, *step.outputs)]
    results = sum(layout.program.tensors[name].num_elements for name in step.outputs)
    yield Work(kernel, int(step.operator.multiply_adds(operands)), int(results), int(max(sizes)))


def _written_model(
    layout: ArenaLayout, written: CFileParts, interface: Interface
) -> source.ModelCalls:
    """Return what a run of a model calls.

    Raises:
        NotExportedError: There are no C kernels for some steps.
    """
    counted = [each.name for each in interface.dimensions if each.counted_by]
    variables = SizeVariables(interface.dimensions, interface.variables, counted)
    layout = replace(layout, counts=_counts(layout.program, interface))
    _check_ports(layout, interface, variables)
    calls = _written_steps(layout, written, interface, variables)
    return source.ModelCalls(interface, tuple(calls), tuple(variables.lines))


def _with_rows(
    layout: ArenaLayout, written: CFileParts, models: Sequence[Interface]
) -> ArenaLayout:
    """Return a layout with the rows that lie apart, and the counts of the steps of all models."""
    counts = {
        name: each for model in models for name, each in _counts(layout.program, model).items()
    }
    return Turns.of(replace(layout, counts=counts), written, models[0]).layout


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8") if isinstance(content, str) else content


def _tested(component: Component) -> list[Sequence[Interface]]:
    """Return the interfaces at each of the sizes that are tested: the highest ones first."""
    models, dimensions = component.models, component.dimensions
    if not dimensions:
        return [models]
    highest = highest_sizes(dimensions)
    given = [each for each in dimensions if not each.counted_by]
    middle = {each.name: each.low + len(each) // 2 * each.step for each in given}
    sizes = [highest, {**highest, **middle}, {**highest, **lowest_sizes(given)}]
    return [
        [model.at(each) for model in models]
        for n, each in enumerate(sizes)
        if each not in sizes[:n]
    ]


def _counts(program: Program, interface: Interface) -> dict[str, tuple[str, str]]:
    """Return the dimension that each step counts and its name in C, by the name of the step."""
    known = dict(zip(interface.dimensions, interface.variables, strict=True))
    return {
        step.name: (dimension.name, name)
        for step in program.steps
        if isinstance(step.operator, RuntimeOperator) and step.operator.counts
        for dimension, name in known.items()
        if dimension.counted_by and same(program.tensors[step.outputs[0]].shape[0], dimension.size)
    }


def _check_ports(layout: ArenaLayout, interface: Interface, variables: SizeVariables) -> None:
    """Check that callers can reach the inputs and outputs of a model.

    Raises:
        NotExportedError: They cannot.
    """
    program = layout.program
    refused = []
    for kind, ports in (("input", interface.inputs), ("output", interface.outputs)):
        for port in (each.port for each in ports):
            tensor = program.tensors[port.tensor]
            if layout.is_constant(port.tensor):
                refused.append((port.name, kind, "constant inputs and outputs are unsupported"))
            elif tensor.dtype.label not in TYPES:
                refused.append(
                    (port.name, kind, f"element type {tensor.dtype.label} is unsupported")
                )
            else:
                try:
                    variables.check(tensor.size)
                except NotWrittenError as reason:
                    refused.append((port.name, kind, str(reason)))
    for name in interface.states:
        if depends(program.tensors[name].size):
            refused.append((name, "state", "a length that depends on sizes is unsupported"))
    if refused or not (layout.height or layout.memories):
        raise NotExportedError(refused or [(program.name, "program", "it has no operators")])


def _written_steps(
    layout: ArenaLayout, written: CFileParts, interface: Interface, variables: SizeVariables
) -> list[source.StepCalls]:
    """Return the calls of each step of a model.

    Raises:
        NotExportedError: Some have no kernels; all of them are named.
    """
    found: list[source.StepCalls] = []
    refused: list[tuple[str, str, str]] = []
    known = writers()
    turns = Turns.of(layout, written, interface)
    layout = replace(layout, has_tables=turns.layout.has_tables, counts=turns.layout.counts)
    steps = layout.program.steps[interface.steps.start : interface.steps.stop]
    is_in_turns = any(isinstance(step.operator, Band) for step in steps)
    for number in interface.steps:
        step = layout.program.steps[number]
        writer = StepWriter(layout, step, number, written)
        try:
            if isinstance(step.operator, Band):
                turns.add(number, step)
                continue
            write = known.get(type(step.operator))
            if write is None:
                raise NotWrittenError("no C kernel for this operator")
            writer.calls += written.external.awaited(*step.reads)
            write(writer)
            if is_in_turns:
                turns.add_whole(step, writer.calls)
                continue
            calls = [variables.filled(each) for each in writer.calls]
            written.work += _work(layout, step, calls)
            found.append(source.StepCalls(step, (*variables.late(), *calls)))
            variables.uncounted.difference_update(layout.counts.get(step.name, ())[:1])
        except NotWrittenError as reason:
            refused.append((step.name, step.operator.label, str(reason)))
        except (ArithmeticError, LookupError, ValueError) as error:  # operands that cannot be
            why = f"malformed operator: {error}"
            refused.append((step.name, step.operator.label, why))
    if refused:
        raise NotExportedError(refused)
    written.layers += turns.definitions()
    if not turns.table:
        return [
            replace(each, calls=tuple(map(written.external.filled, each.calls))) for each in found
        ]
    first = layout.program.steps[interface.steps.start]
    return [source.StepCalls(first, (turns.call(),), len(turns.table), turns.table_name)]


def plan_digest(problem: Problem, plan: Plan) -> str:
    """Return the SHA-256 of where a plan puts every record."""
    places = [
        [record.name, record.size, record.start, record.end, offset]
        for record, offset in zip(problem.records, plan.offsets, strict=True)
    ]
    return hashlib.sha256(json.dumps(places, separators=(",", ":")).encode()).hexdigest()
