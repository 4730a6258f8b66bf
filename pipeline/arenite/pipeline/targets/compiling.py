"""From a model file to a program with a plan."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np

from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.placing import place
from arenite.pipeline.base.reading import Reading, read_graph
from arenite.planner import (
    AliasKind,
    Derivation,
    DType,
    FindOrder,
    Plan,
    Program,
    Rules,
    Source,
    TensorKind,
    derive,
    verify,
)
from arenite.planner.errors import about_file
from arenite.planner.files import model_digest
from arenite.planner.placement import verify_sizes
from arenite.planner.programs import OperatorSet, RowStep
from arenite.runtime.operators import (
    SHORT_FLOATS,
    InnerProgram,
    RuntimeOperator,
    throughout,
    with_inner,
)
from arenite.runtime.program import Assembly, Code, Weights, assemble
from arenite.runtime.rewrites import (
    Activations,
    Kernels,
    Prefer,
    ShortWeights,
    Streaming,
    derive_ahead,
    fuse_attention,
    fuse_sums,
    grow_states,
    keep_caches,
    keep_halves,
    keep_short_weights,
    pack_filters,
    short_weights,
    stream_weights,
    streamed,
    with_room,
    with_tiles,
    without_rise,
)
from arenite.strategies import Best

ALIGNMENT = 64
"""Bytes: a cache line, so no two records share one."""

_FEW_ROWS = 32
"""Rows of a product whose weights stay in 16 bits if the model has them so: their conversion takes
less time than reading twice as many bytes."""

ALIASES = (
    AliasKind.IN_PLACE,
    AliasKind.NORMALISATION,
    AliasKind.REUSE_INPUTS,
    AliasKind.SLICES,
    AliasKind.CONCAT,
)
"""Kinds of sharing in our runtime; lowered views have no step, so they need none."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Which kernels are quicker on one processor, as measured.

    Attributes:
        processor: Its name, as the core states it.
        prefer: Tells which tiles are quicker there.
    """

    processor: str
    prefer: Prefer


Tune: TypeAlias = Callable[[Program], Tuning]
"""Measures the kernels of a program's convolutions."""


def rules(capacity: int | None = None) -> Rules:
    """Return how our runtime counts memory."""
    return Rules(ALIASES, alignment=ALIGNMENT, capacity=capacity)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model ready to be placed.

    Attributes:
        source: The lowered program in its final order, its storage shared, and its records.
        streaming: How the weight budget is met, if there is one.
        kernels: Which kernels compute convolutions, once there is a plan.
        tuning: Which of them are quicker on one processor; None if a table decides on all.
        room: Bytes that the arena may grow to for their working memory, if the plan takes less.
        unshared: The program, none of its storage shared; None if it is not known.
    """

    source: Source
    streaming: Streaming | None = None
    kernels: Kernels = Kernels.DIRECT
    tuning: Tuning | None = None
    room: int = 0
    unshared: Program | None = None

    @property
    def program(self) -> Program:
        """The program, in the order it runs."""
        assert self.source.program is not None
        return self.source.program

    def tiled(self, plan: Plan) -> tuple[Self, Plan]:
        """Return the program with its kernels chosen, and the plan with their working memory."""
        program, problem, plan = with_tiles(
            self.program, self.source.problem, plan, self.kernels,
            tuned=None if self.tuning is None else self.tuning.prefer, room=self.room,
        )  # fmt: skip
        problem, plan = with_room(program, problem, plan)
        source = replace(self.source, program=program, problem=problem)
        return replace(self, source=source, kernels=Kernels.DIRECT), plan

    def assemble(
        self, plan: Plan, code: Code | None = None, weights: Weights | None = None
    ) -> Assembly:
        """Combine the program with a plan.

        Args:
            plan: A plan of the source's records.
            code: Encodes constants; None leaves them as they are.
            weights: Those of programs that share the file.

        Raises:
            InvalidPlanError: The plan is not right for the records.
        """
        verify(self.source.problem, plan)
        tiled, plan = self.tiled(plan)
        verify(tiled.source.problem, plan)
        verify_sizes(tiled.source.problem, tiled.source.dimensions)
        return assemble(
            tiled.program,
            tiled.source.problem,
            plan,
            digest=self.source.digest,
            producer=f"arenite {version('arenite')}",
            tuned_on=None if self.tuning is None else self.tuning.processor,
            code=code,
            weights=weights,
        )


@dataclass(frozen=True, slots=True)
class Lowered:
    """A model as steps of our runtime, none of its storage shared yet.

    Attributes:
        name: File name, without folders.
        digest: SHA-256 of its bytes, hexadecimal.
        program: The steps, in the order of the file.
        streaming: How the weight budget is met, if there is one.
    """

    name: str
    digest: str
    program: Program
    streaming: Streaming | None = None

    @property
    def loads_beside(self) -> bool:
        """Whether weights are loaded beside the computation."""
        return self.streaming is not None and self.streaming.at_once > 1

    def in_order(self, found: Derivation) -> Program:
        """Return this program in the order of a derivation of it, no storage shared."""
        return self.program if found.order is None else self.program.reordered(found.order.steps)

    def ahead(self, found: Derivation, rules: Rules) -> Derivation:
        """Return a derivation of this program with its weights loaded as early as possible."""
        return derive_ahead(found, rules) if self.loads_beside else found

    def compiled(self, derivation: Derivation) -> Compiled:
        """Return the model as derived from this program, or from a rewrite of it."""
        source = Source.derived(self.name, self.digest, derivation)
        return Compiled(source, self.streaming, unshared=derivation.unshared)


def compile_model(
    path: Path,
    reading: Reading | None = None,
    *,
    order: FindOrder | tuple[str, ...] | None = None,
    capacity: int | None = None,
    kernels: Kernels = Kernels.QUICK,
    tune: Tune | None = None,
) -> Compiled:
    """Lower a model and derive its records, for a strategy to place.

    Args:
        path: An ONNX or TFLite file.
        reading: Its dimensions, shapes, values and weight budget. Weights beyond that budget are
            streamed, during the computation where two windows fit it.
        order: Step names in order, or a function that finds an order; by default the model's.
        capacity: Most bytes the arena may take; None for no limit.
        tune: Measures the candidates of a program; None to go by a table.

    Raises:
        ModelError: The model cannot be read, or has an operator that nothing runs.
        WeightBudgetError: The budget cannot be met.
        MissingDependencyError: The package of its format is absent.
    """
    lowered = lower_model(path, reading)
    tuning = None if tune is None else tune(lowered.program)
    found = derive(lowered.program, rules(capacity), order)
    if not isinstance(order, tuple):  # an order given is the final one
        found = lowered.ahead(found, rules(capacity))
    return replace(lowered.compiled(found), kernels=kernels, tuning=tuning)


def lower_model(
    path: Path, reading: Reading | None = None, *, part_of: Program | None = None
) -> Lowered:
    """Lower a model, for rewrites to change and `derive` to derive its records.

    Other args and errors are those of `compile_model`.

    Args:
        part_of: A program of it for more sizes, which has weights in common with this one: they
            have 16 bits where they have them there.
    """
    reading = reading or Reading()
    with about_file(path):
        graph = read_graph(path, reading)
        program = on_stream(place_inner(throughout(lower(graph), fuse_sums)), reading)
        if reading.cache is not None:
            program = keep_caches(program, reading.cache)
    is_asked_for = reading.activations is Activations.FP16
    narrow = frozenset[str]()
    if reading.activations is None:
        narrow = _stated_halves(graph)
    if is_asked_for or narrow:
        program = keep_halves(program, narrow)
    streaming, budget = None, reading.weight_budget
    if reading.activations is not Activations.FP32:
        takes_all = is_asked_for or bool(narrow) or budget is not None or part_of is not None
        weights = short_weights(
            program, may_round=is_asked_for, most_rows=None if takes_all else _FEW_ROWS
        )
        weights = _worthwhile(program, weights, part_of, takes_all=budget is not None)
        program = keep_short_weights(program, weights)
    if budget is not None:
        streaming = stream_weights(program, budget.bytes_of(program), budget.loading)
        program = streaming.program
    return Lowered(path.name, model_digest(path), program, streaming)


def _worthwhile(
    program: Program, weights: ShortWeights, part_of: Program | None, *, takes_all: bool
) -> ShortWeights:
    """Return the weights that keep 16 bits: those that do in a program for more sizes.

    Where there is none, and not all are to, those that leave the arena as it is.
    """
    if part_of is not None:
        tensors = part_of.tensors
        return {
            name: each
            for name, each in weights.items()
            if name in tensors and tensors[name].dtype in SHORT_FLOATS
        }
    if takes_all or not weights:
        return weights
    return without_rise(program, derive(program, rules()).problem, weights)


def on_stream(program: Program, reading: Reading) -> Program:
    """Return a lowered program as it runs on the stream of a reading, itself if there is none.

    Raises:
        NotStreamedError: It cannot run on that stream.
    """
    return program if reading.hops is None else streamed(program, reading.hops).program


def _stated_halves(graph: Program) -> frozenset[str]:
    """Return the names of a model's 16-bit floats; none if it computes no such."""
    halves = [each for each in graph.tensors.values() if each.dtype is DType.FLOAT16]
    if not any(each.kind is TensorKind.ACTIVATION for each in halves):
        return frozenset()
    return frozenset(each.name for each in halves if each.kind is not TensorKind.CONSTANT)


def runs_by_rows(program: Program, row_step: RowStep) -> bool:
    """Tell whether the core has a kernel that makes rows of a step apart."""
    operator, operands = row_step.step.operator, program.operands(row_step.step)
    if not isinstance(operator, RuntimeOperator):
        return False
    if operator.computes_halves(operands):
        return row_step.scratch > 0
    return operator.has_kernel_by_rows(operands)


def place_inner(program: Program) -> Program:
    """Return a lowered program with the programs that its steps run in their order and placed.

    They have the best order and the best offsets, whatever those of the program itself are: the
    working memory of the steps follows from them.
    """
    return with_inner(program, _placed)


def _placed(inner: InnerProgram) -> InnerProgram:
    found = derive(place_inner(inner.program), rules(), order_finder("best"))
    plan = place(Best(), found.problem).plan
    return InnerProgram(found.program, found.problem, plan)


def _fused_and_packed(program: Program) -> Program:
    return pack_filters(fuse_attention(program))


@np.errstate(over="ignore", invalid="ignore")  # weights that are not finite stay so
def lower(model: Program) -> Program:
    """Lower a model to a program that the core runs, attention fused and its filters packed.

    Args:
        model: A model read with its weights.

    Raises:
        ModelError: It has an operator that nothing runs.
    """
    if model.operator_set is OperatorSet.TFLITE:
        from arenite.runtime.lowering import lower_tflite

        return throughout(lower_tflite(model), _fused_and_packed)
    from arenite.runtime.lowering import lower_onnx

    return pack_filters(grow_states(fuse_attention(lower_onnx(model))))
