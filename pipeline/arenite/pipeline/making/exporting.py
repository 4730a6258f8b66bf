"""A model for another runtime: C source, or our plan inside the model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from operator import methodcaller
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.memories import spread_over
from arenite.pipeline.base.observing import UNLIMITED, SearchLimits
from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.placing import place, run_strategy
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.flash import FlashBudgetError, FlashPoint, flash_frontier, flash_of
from arenite.pipeline.making.hops import ways_in_parts
from arenite.pipeline.making.programs import session_by_plan
from arenite.pipeline.targets.arenite import compiled_for
from arenite.pipeline.targets.c import compile_hybrid, in_order, lower_model_for_c
from arenite.planner import (
    Boundary,
    Budget,
    Candidate,
    Costs,
    Link,
    Plan,
    Problem,
    Program,
    Strategy,
    derive,
    verify,
)
from arenite.planner.programs import CostedMemory, RowStep
from arenite.planner.sizes import depends
from arenite.runtime.cexport import (
    CExport,
    CompiledForC,
    COptions,
    Extension,
    FailedExportError,
    HostTest,
    Interface,
    LoweredForC,
    QuantiseRows,
    Rounding,
    Vectors,
    check_folder,
    component_name,
    export_c,
    fetch_weights,
    for_cmsis_nn,
    has_kernel_by_rows,
    run_on_host,
    vectors,
    with_windows,
    write_folder,
)
from arenite.runtime.rewrites import split_channels, split_heads
from arenite.runtime.targets import TflmExport, export_tflm
from arenite.strategies import StripsSearch, find

MICROCONTROLLER = Costs(30e6, 100e6, Link(1e6, 1e6), step_s=2e-6)
"""A small core: 30 million multiply-adds a second, 100 MB/s of memory."""


@dataclass(frozen=True, slots=True)
class CRequest:
    """A model to export as C, or a system, and the options.

    Attributes:
        model: An ONNX or TFLite file, or the description of a system.
        name: Prefix of names; None for the model's.
        rounding: How products of integers are rounded; None for that of the model's format.
        budget: Of the arena; None for the size of the whole program.
        extension: Of the processor, for CMSIS-NN's kernels; None for ours.
        is_tested: Whether the source is compiled and tested on this machine, if it can run here.
        memories: Memories to spread the records over; one by default.
        flash: Most bytes of flash for weights and code; None for the quickest way.
    """

    model: Path
    folder: Path
    reading: Reading
    strategy: Strategy
    name: str | None
    rounding: Rounding | None = None
    budget: Budget | None = None
    extension: Extension | None = None
    is_tested: bool = True
    memories: Sequence[CostedMemory] = ()
    flash: int | None = None

    def check(self) -> None:
        """Check what can be checked before the long work.

        Raises:
            OutputError: The folder cannot be written.
            OptionsError: The name is none in C, or options exclude each other.
        """
        check_folder(self.folder, self.model)
        if self.name is not None and component_name(self.name) != self.name:
            raise OptionsError(
                f"--name {self.name!r} is no name for C and its header; "
                f"try {component_name(self.name)!r}"
            )

        has_several = bool(self.memories) or self.reading.boundary is Boundary.EXCLUDE
        if has_several and self.reading.ranges:
            raise OptionsError(
                f"--memory and --boundary exclude take one size: {self.reading.ranges[0]} is a "
                "range"
            )
        limits = {"--weights": self.reading.weight_budget, "--flash": self.flash}
        stated = [option for option, value in limits.items() if value is not None]
        if len(stated) > 1:
            raise OptionsError("--weights and --flash exclude each other")
        if stated:
            excluded = {
                "--budget": self.budget, "--kernels cmsis-nn": self.extension,
                "ranges": self.reading.ranges, "streams": self.reading.hops,
            }  # fmt: skip
            for option, value in excluded.items():
                if value:
                    raise OptionsError(
                        f"{stated[0]} is for our own kernels, whole layers and one size: it "
                        f"excludes {option}"
                    )
        if self.memories and self.budget is not None:
            raise OptionsError("memories state capacities; leave out --budget")

    def for_kernels(self, lowered: LoweredForC) -> LoweredForC:
        """Return a lowered model as its kernels take it: those of CMSIS-NN, if asked for.

        Raises:
            WeightBudgetError: The budget of weights cannot be met.
        """
        if self.reading.weight_budget is not None:
            program = fetch_weights(lowered.program, self.reading.weight_budget)
            return replace(lowered, program=program)
        if self.extension is None:
            return lowered
        return replace(
            lowered, program=for_cmsis_nn(lowered.program, lowered.shifted, self.extension)
        )


@dataclass(frozen=True, slots=True)
class ExportedC:
    """An exported model.

    Attributes:
        reference: Name of the runtime whose outputs the test checks.
        test: What the test found on this machine: no wrong output, or that it did not run.
        multiply_adds_ratio: Multiply-adds over those of the whole program.
        frontier: Ways between small and quick, if there is a budget of flash.
    """

    request: CRequest
    export: CExport
    plan: Plan
    reference: str
    test: HostTest
    multiply_adds_ratio: float = 1.0
    frontier: Sequence[FlashPoint] = ()


Choose: TypeAlias = Callable[[StripsSearch], Candidate]
"""Picks one of the programs in bands that a search finds."""


def write_c(request: CRequest, choose: Choose | None = None) -> ExportedC:
    """Write a model as C source and return the export.

    Args:
        choose: Picks the program in bands; None for the quickest within the budget, if any.

    Raises:
        ModelError: It cannot be read, or has no C kernels; nothing is written.
        FailedExportError: Outputs of its test differ, or the test did not run; nothing is written.
        FlashBudgetError: It does not fit the budget of flash; nothing is written.
        OutputError: The folder cannot be written.
    """
    request.check()
    own = lower_model_for_c(request.model, request.reading)
    lowered = request.for_kernels(own)
    # Of a stream no other runtime has the bits, so it has ours.
    rounding = request.rounding or (own.rounding if request.reading.hops is None else "even")
    if request.extension is not None:
        rounding = "double"  # CMSIS-NN has no other
    frontier: Sequence[FlashPoint] = ()
    point = FlashPoint(0, None, 0, is_quick=True)
    if request.flash is not None:
        frontier, point = _within_flash(request, lowered, rounding)
        lowered = _stored(lowered, point)
    compiled, plan = _planned(request, lowered)
    ratio = 1.0
    if request.budget is not None:
        size = request.budget.bytes_of(plan.height)
        assert size is not None
        if plan.height > size and choose is None:
            found = _in_parts(request, size)
            choose = methodcaller("within", size) if found is None else None
            compiled, plan = found or (compiled, plan)
    if choose is not None:
        with bands_for_c(request, lowered) as search:
            banded = choose(search)
        compiled, plan = lowered.compiled(banded.derivation), banded.plan
        ratio = banded.multiply_adds_ratio

    def check(interface: Interface) -> Vectors:
        return vectors(
            request.model,
            own.program,
            interface,
            lambda runs: outputs_of(request.model, request.reading, own.program, interface, runs),
            rounding=rounding,
            is_rewritten=request.reading.hops is not None,
        )

    written = write_planned_c(request, compiled, plan, rounding, check, point)
    return replace(written, multiply_adds_ratio=ratio, frontier=frontier)


def _planned(request: CRequest, lowered: LoweredForC) -> tuple[CompiledForC, Plan]:
    """Return a model in order, and its plan, over several memories if asked for."""
    compiled = in_order(request.reading, lowered)
    if not request.memories:
        plan = place(request.strategy, compiled.source.problem, request.reading.limits).plan
        return compiled, plan
    spread, outcome, _ = spread_over(
        compiled.source, request.memories, request.strategy, request.reading.limits
    )
    return replace(compiled, source=spread), outcome.plan


def _stored(lowered: LoweredForC, point: FlashPoint) -> LoweredForC:
    if not point.coded:
        return lowered
    return replace(lowered, program=with_windows(lowered.program, point.coded))


def _within_flash(
    request: CRequest, lowered: LoweredForC, rounding: Rounding
) -> tuple[list[FlashPoint], FlashPoint]:
    """Return all ways between small and quick, and the quickest within the budget of flash.

    Raises:
        FlashBudgetError: None is.
    """
    assert request.flash is not None

    def written(model: LoweredForC, point: FlashPoint) -> CExport:
        planned = _planned(request, _stored(model, point))
        return export_c(*planned, _options(request, rounding, point))

    frontier = flash_frontier(lowered, written)
    for point in frontier:
        if point.flash > request.flash:
            continue
        exported = written(lowered, point)  # fewer layers have another code
        if flash_of(exported) <= request.flash:
            return frontier, point
    raise FlashBudgetError(request.flash, min(each.flash for each in frontier))


def _options(request: CRequest, rounding: Rounding, point: FlashPoint) -> COptions:
    return COptions(
        request.name, rounding, version=version("arenite"), is_quick=point.is_quick,
        is_coded=bool(point.coded),
    )  # fmt: skip


def write_planned_c(
    request: CRequest,
    compiled: CompiledForC,
    plan: Plan,
    rounding: Rounding,
    check: Callable[[Interface], Vectors],
    point: FlashPoint | None = None,
) -> ExportedC:
    """Write a program as C source by its plan, tested on this machine, and return the export.

    Args:
        request: Where it is written, and the options.
        compiled: The program, of one model or of a system.
        plan: A plan of its records.
        rounding: How products of integers are rounded.
        check: Makes what the test checks of a model.
        point: How its layers are stored and run; None for the quickest way.

    Raises:
        NotExportedError: Some steps have no C kernels; nothing is written.
        FailedExportError: Outputs of its test differ, or the test did not run; nothing is written.
        OutputError: The folder cannot be written.
    """
    checked: list[str] = []

    def noted(interface: Interface) -> Vectors:
        found = check(interface)
        checked.append(found.reference)
        return found

    options = _options(request, rounding, point or FlashPoint(0, None, 0, is_quick=True))
    export = export_c(compiled, plan, options, noted)
    reference = " and ".join(dict.fromkeys(checked))
    if request.extension is not None:
        test = HostTest(None, "CMSIS-NN is for another processor")
    elif not request.is_tested:
        test = HostTest(None, "--no-test")
    else:
        test = run_on_host(export.name, export.files)
        if test.num_wrong is None:
            raise FailedExportError(
                f"the test of the C source did not run: {test.message}; nothing was written; "
                "--no-test writes it untested",
                path=request.model,
            )
    if wrong := test.num_wrong:
        reason = f"{wrong} outputs of its test differ"
        if wrong < 0:
            reason = f"it does not run {test.message}".rstrip()
        raise FailedExportError(
            f"the C source does not compute what {reference} computes: {reason}; "
            "nothing was written; please report the model",
            path=request.model,
        )
    write_folder(request.folder, export.files)
    return ExportedC(request, export, plan, reference, test)


def _in_parts(request: CRequest, size: int) -> tuple[CompiledForC, Plan] | None:
    """Return the program of a hop in parts whose plan fits a budget, None if there is none."""
    hops = request.reading.hops
    if hops is None:
        return None
    window = lower_model_for_c(request.model, replace(request.reading, hops=None)).program
    for each in ways_in_parts(window, hops):
        own = lower_model_for_c(request.model, replace(request.reading, hops=each))
        compiled, plan = _planned(request, request.for_kernels(own))
        if plan.height <= size:
            return compiled, plan
    return None


@contextmanager
def bands_for_c(request: CRequest, lowered: LoweredForC) -> Iterator[StripsSearch]:
    """Yield the search of the bands of rows in which a model may run; it is watched meanwhile."""
    order = order_finder(request.reading.order_name or "best", request.reading.limits)
    program = derive(lowered.program, lowered.rules_in_bands, order)
    ordered = lowered.program.reordered([step.name for step in program.program.steps])
    limits = request.reading.limits
    is_over = limits.is_over()
    with limits.observer.searching("export", "program") as search:

        def should_stop() -> bool:
            return search.should_stop() or is_over()

        def in_parts(program: Program) -> tuple[Program, Callable[[RowStep], bool]]:
            # The names of parts are not those of tensors that are stored less 128.
            found = program if lowered.shifted else split_channels(split_heads(program))
            return found, partial(has_kernel_by_rows, found, lowered.shifted)

        def placed(problem: Problem) -> Plan:
            plan = run_strategy(request.strategy, problem, lambda _best, _bound: should_stop())
            verify(problem, plan)
            return plan

        yield StripsSearch(
            ordered,
            lowered.rules_in_bands,
            MICROCONTROLLER,
            placed,
            should_stop,
            partial(has_kernel_by_rows, ordered, lowered.shifted),
            in_parts,
        )


def outputs_of(
    model: Path,
    stated: Reading,
    program: Program,
    interface: Interface,
    runs: Sequence[Mapping[str, NDArray[Any]]],
) -> list[Mapping[str, NDArray[Any]]]:
    """Return the outputs of our runtime for the inputs of several runs, one after the other.

    Where the program rounds operands of layers to bytes, so does our runtime here.
    """
    reading = Reading(stated.dims, stated.shapes, stated.values, hops=stated.hops)
    if interface.dimensions:
        dims = {
            name: each
            for name, each in reading.dims.items()
            if isinstance(each, int) and not depends(each)
        }
        shapes = {each.port.name: each.port.shape(each.tensor.shape) for each in interface.inputs}
        reading = Reading(dims, shapes, reading.values, hops=reading.hops)
    if any(isinstance(step.operator, QuantiseRows) for step in program.steps):
        compiled = compile_hybrid(model, reading)
    else:
        compiled = compiled_for(reading, model)
    with session_by_plan(compiled) as session:
        return [dict(session.run(inputs)) for inputs in runs]


def export_for_tflm(
    model: Path, strategy: Strategy, limits: SearchLimits = UNLIMITED
) -> TflmExport:
    """Return the model with the better of the strategy's plan and the interpreter's own.

    Raises:
        AreniteError: It cannot be planned.
    """

    def plan(problem: Problem) -> Plan:
        return place(strategy, problem, limits).plan

    return export_tflm(model, plan, find("tflm"))
