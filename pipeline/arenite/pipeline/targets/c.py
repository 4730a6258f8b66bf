"""Programs of exported C; results may overlap the operands they consume."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from arenite.pipeline.base.ordering import order_finder
from arenite.pipeline.base.placing import place
from arenite.pipeline.base.reading import Reading, read_graph
from arenite.pipeline.targets.compiling import Compiled, Lowered, on_stream, place_inner, rules
from arenite.planner import (
    AliasKind,
    Derivation,
    FindOrder,
    Program,
    Rules,
    Step,
    Tensor,
    TensorKind,
    derive,
    model_format,
)
from arenite.planner.errors import UnsupportedModelError, about_file
from arenite.planner.files import model_digest
from arenite.runtime.cexport import (
    CompiledForC,
    LoweredForC,
    NotExportedError,
    Rounding,
    Signed,
    is_unsigned,
    lower_for_c,
    lower_hybrid_for_runtime,
    signed,
)
from arenite.runtime.operators import InnerProgram, While, inner_programs, throughout, with_inner
from arenite.runtime.rewrites import (
    Loading,
    derive_ahead,
    loads_beside,
    loads_in_turn,
    pack_filters,
)
from arenite.strategies import Best

ALIGNMENT = 4
"""Bytes: the widest load of a 32-bit core."""

ALIASES = (
    AliasKind.IN_PLACE,
    AliasKind.NORMALISATION,
    AliasKind.REUSE_INPUTS,
    AliasKind.SLICES,
    AliasKind.CONCAT,
    AliasKind.OVERLAP,
)
"""Kinds of sharing that the C kernels permit; lowered views have no step, so they need none."""


def in_order(reading: Reading, lowered: LoweredForC) -> CompiledForC:
    """Return a lowered model in the best order, unless the user decides it.

    Raises:
        UnsupportedModelError: Its steps cannot be put into the order that the user wants.
    """
    try:
        return _ordered(reading, lowered, reading.order_name or "best")
    except UnsupportedModelError:  # steps that cannot be moved
        if reading.order_name is not None:
            raise
        return _ordered(reading, lowered, "given")


def _ordered(reading: Reading, lowered: LoweredForC, order_name: str) -> CompiledForC:
    order = order_finder(order_name, reading.limits)
    found = derive(lowered.program, lowered.rules, order)
    budget = reading.weight_budget
    if budget is not None and budget.loading is not Loading.IN_TURN:
        found = _ahead(found, lowered.rules)
    return lowered.compiled(found)


def _ahead(found: Derivation, rules: Rules) -> Derivation:
    """Return a program with fetches of weights as early as there is room in the same arena."""
    beside = replace(found, program=loads_beside(found.program))
    ahead = derive_ahead(beside, rules, found.problem.lower_bound)
    if ahead.problem.lower_bound > found.problem.lower_bound:
        return found
    return replace(ahead, program=loads_in_turn(ahead.program))


def compile_for_c(
    path: Path, reading: Reading | None = None, *, order: FindOrder | tuple[str, ...] | None = None
) -> CompiledForC:
    """Lower a model for C kernels and derive its records, for a strategy to place.

    Args:
        path: An ONNX or TFLite file.
        reading: Its dimensions, shapes and values, and the alignment of every offset.
        order: Step names in order, or a function that finds an order; by default the model's.

    Raises:
        ModelError: The model cannot be read, or has an operator that has no translation.
        NotExportedError: A tensor is too large for the kernels.
        MissingDependencyError: The package of its format is absent.
    """
    lowered = lower_model_for_c(path, reading)
    return lowered.compiled(derive(lowered.program, lowered.rules, order))


def lower_model_for_c(
    path: Path, reading: Reading | None = None, capacity: int | None = None
) -> LoweredForC:
    """Lower a model for C kernels, for rewrites to change and `derive` to derive its records.

    Args and errors are those of `compile_for_c`.
    """
    reading = reading or Reading()
    with about_file(path):
        found = signed(on_stream(lower_for_c(read_graph(path, reading)), reading))
        _check_sizes(found.program)
    alignment = max(reading.alignment or 1, ALIGNMENT, _widest(found.program))
    found = replace(found, program=_with_placed(found, alignment))
    rules = Rules(
        _aliases(found.program), reading.boundary, alignment=alignment, capacity=capacity
    )
    rounding: Rounding = "double" if model_format(path) == "tflite" else "even"
    digest = model_digest(path)
    return LoweredForC(path.name, digest, found.program, found.shifted, rules, rounding)


def _with_placed(found: Signed, alignment: int) -> Program:
    """Return a lowered program with the programs that its steps run in their order and placed.

    Raises:
        NotExportedError: A loop carries quantised bytes without a sign as something else.
    """
    refused = [
        (step.name, step.operator.label, f"it carries {name!r} as bytes and as quantised ones")
        for step in found.program.steps
        if isinstance(step.operator, While)
        for name, inside in _carried(step, step.operator)
        if is_unsigned(inside) != (name in found.shifted)
    ]
    if refused:
        raise NotExportedError(refused)

    def placed(inner: InnerProgram) -> InnerProgram:
        own = signed(inner.program, is_inner=True)
        _check_sizes(own.program)
        program = _with_placed(own, alignment)
        made = derive(program, Rules(_aliases(program), alignment=alignment), order_finder("best"))
        plan = place(Best(), made.problem).plan
        return InnerProgram(made.program, made.problem, plan, own.shifted)

    return with_inner(found.program, placed)


def _carried(step: Step, loop: While) -> Iterator[tuple[str, Tensor]]:
    """Yield the values that a loop carries, and each tensor that is one of them inside."""
    condition, body = (each.program for each in loop.inner)
    for names, program, ports in (
        (step.outputs, condition, condition.inputs),
        (step.inputs, body, body.inputs),
        (step.outputs, body, body.outputs),
    ):
        for name, port in zip(names, ports, strict=True):
            yield name, program.tensors[port.tensor]


_MOST_BYTES = 2**31 - 1
"""Of a tensor: the kernels count bytes in 32 bits."""

_MOST_TRACED = 1 << 24
"""Elements of the largest tensor in a program whose overlaps are searched, pixel by pixel."""


def compile_hybrid(path: Path, reading: Reading) -> Compiled:
    """Lower a TFLite model, what layers with weights of bytes read being rounded to bytes too.

    Args and errors are those of `compile_model`.
    """
    with about_file(path):
        lowered_hybrid = lower_hybrid_for_runtime(read_graph(path, reading))
        program = on_stream(place_inner(throughout(lowered_hybrid, pack_filters)), reading)
    lowered = Lowered(path.name, model_digest(path), program)
    return lowered.compiled(derive(program, rules()))


def _check_sizes(program: Program) -> None:
    """Check that the kernels can count the bytes of every tensor."""
    large = [
        (tensor.name, tensor.dtype.label, f"size {tensor.size} B is beyond 32 bits")
        for tensor in program.tensors.values()
        if tensor.size > _MOST_BYTES
    ]
    if large:
        raise NotExportedError(large)


def _aliases(program: Program) -> tuple[AliasKind, ...]:
    """Return the kinds of sharing: overlaps only where they are found in a short time."""
    most = max((tensor.num_elements for tensor in program.tensors.values()), default=0)
    if most <= _MOST_TRACED:
        return ALIASES
    return tuple(kind for kind in ALIASES if kind is not AliasKind.OVERLAP)


def _widest(program: Program) -> int:
    """Return the bytes of the widest element in the arena."""
    inside = [_widest(each.program) for each in inner_programs(program)]
    own = [
        tensor.dtype.bits // 8
        for tensor in program.tensors.values()
        if tensor.kind is not TensorKind.CONSTANT
    ]
    return max(own + inside, default=1)
