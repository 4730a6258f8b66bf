"""Lower a whole ONNX model; steps without a kernel of ours become steps of ONNX Runtime."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from arenite.planner import DType, Program, Step, TensorKind
from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.planner.importers.onnx import Origin, operator_model
from arenite.planner.operators import Imported
from arenite.planner.sizes import Expression
from arenite.runtime.lowering.builder import ProgramBuilder
from arenite.runtime.lowering.errors import NotLoweredError, UnsupportedOperatorsError
from arenite.runtime.lowering.layout import Order, as_written, channels_last
from arenite.runtime.lowering.onnx import (  # noqa: F401  # so that their translators are listed
    attention,
    blocks,
    convolution,
    dynamic,
    einsum,
    elementwise,
    linear,
    microsoft_attention,
    movement,
    recurrent,
    reduction,
    rotary,
    transformer,
)
from arenite.runtime.lowering.onnx.half import with_wide_floats
from arenite.runtime.lowering.onnx.quantisation import with_quantisations
from arenite.runtime.lowering.onnx.quantised import Quantised
from arenite.runtime.lowering.onnx.translation import TRANSLATORS, OnnxTranslation
from arenite.runtime.lowering.onnx.weight_gradients import (
    FoundGradient,
    translate_found,
    with_weight_gradients,
)
from arenite.runtime.lowering.translation import KNOWN_TYPES, InputLayout, check_input_types
from arenite.runtime.operators.special import External
from arenite.runtime.targets.onnxruntime.stock import stock_options, stock_session


def external(builder: ProgramBuilder, step: Step) -> None:
    """Emit the step that ONNX Runtime runs for a step of the model.

    Raises:
        NotLoweredError: It has tensors of a type that the core does not know, makes as much as
            its data say, is no node of the file, or ONNX Runtime has no kernel for it.
        MissingDataError: Weights of its subgraphs lie in a file that is not as stated.
    """
    if isinstance(step.operator, Imported) and step.operator.is_bound:
        raise NotLoweredError("its output shape depends on the data")
    tensors = builder.model.tensors
    for name in (*step.reads, *step.writes):
        if tensors[name].dtype not in KNOWN_TYPES:
            raise NotLoweredError(
                f"tensor {name!r} has the unsupported element type {tensors[name].dtype.label}"
            )
    single = operator_model(builder.model, step)
    if single is None:
        raise NotLoweredError("the model file has no node for it")
    refusal = _why_refused(single.model)
    if refusal is not None:
        raise NotLoweredError(refusal)
    sources = [builder.as_written(builder.value(name), step.name) for name in single.inputs]
    shapes = {name: tensors[name].shape for name in single.outputs}
    made = builder.emit(
        External(
            runtime="onnxruntime",
            model=single.model,
            input_names=single.input_names,
            output_names=single.output_names,
            op_type=step.operator.label,
            repeats=step.operator.repeatable,
        ),
        sources,
        [(name, shape, as_written(len(shape))) for name, shape in shapes.items()],
        dtype=[tensors[name].dtype for name in single.outputs],
        step=step.name,
    )
    for name, value in zip(shapes, made, strict=True):
        builder.bind(name, value)


def _why_refused(model: bytes) -> str | None:
    """Return why ONNX Runtime makes no session of a model, None if it does or is absent.

    Where it is absent the session says so that needs it: the file may be for another machine.
    """
    try:
        stock_session(model, stock_options())
    except MissingDependencyError:
        return None
    except UnsupportedModelError as error:
        return str(error).removeprefix("'model': ")
    return None


def lower_onnx(model: Program) -> Program:
    """Lower an ONNX model to a program that the core runs.

    Args:
        model: A model read with its weights.

    Raises:
        UnsupportedModelError: An input is of a type that the core does not have.
        UnsupportedOperatorsError: An operator has neither a kernel of ours nor, without
            subgraphs, one of ONNX Runtime's.
    """
    check_input_types(model)
    wide = with_wide_floats(model)
    if wide is not model:
        with suppress(UnsupportedOperatorsError):
            return _lowered(wide)
    return _lowered(model)


def _lowered(model: Program) -> Program:
    quantisations = with_quantisations(with_weight_gradients(model))
    model = quantisations.program
    builder = ProgramBuilder(model)
    quantised = Quantised(builder, quantisations)
    producers = {name: step for step in model.steps for name in step.writes}
    for name in model.input_tensors:
        order = _by_rows(model, name) if name in model.caches else _input_order(model, name)
        builder.add_input(name, order)
    for tensor in model.tensors.values():
        if tensor.kind is TensorKind.STATE:
            builder.add_state(tensor.name)
    opset = _opset(model)
    for step in model.steps:
        _translate(OnnxTranslation(builder, step, producers, opset), quantised)
    for state, new in _replaced(model):
        builder.assign(state, builder.as_written(builder.value(new), new))
    program = builder.finish()
    names = {step.name for step in program.steps}
    fallbacks = Counter(reason for name, reason in builder.fallbacks.items() if name in names)
    if not fallbacks:
        return program
    note = "operators left to ONNX Runtime: " + "; ".join(
        f"{n} {reason}" for reason, n in fallbacks.items()
    )
    notes = [note]
    if program.dimensions:
        notes.append(
            "for these operators ONNX Runtime allocates in each run, beside the arena: at most "
            "what they take at the highest sizes, and nothing is kept"
        )
    return replace(program, notes=(*program.notes, *notes))


def _replaced(model: Program) -> Iterator[tuple[str, str]]:
    """Yield each state with the tensor that a step writes in its place for the next run."""
    for step in model.steps:
        for name in step.writes:
            root, _ = model.root(name)
            if root != name and model.tensors[root].kind is TensorKind.STATE:
                yield root, name


def _opset(model: Program) -> int:
    """Return the version of ONNX's own operator set."""
    for step in model.steps:
        if isinstance(step.operator, Imported) and isinstance(step.operator.origin, Origin):
            return step.operator.origin.dialect.opsets.get("", 1)
    return 1


def _translate(t: OnnxTranslation, quantised: Quantised) -> None:
    if isinstance(t.step.operator, FoundGradient):
        translate_found(t, t.step.operator)
        return
    translate = TRANSLATORS.find(t.kind)
    try:
        if quantised.translate(t):
            return
        if translate is None:
            raise NotLoweredError("no kernel for this operator")
        _check_doubles(t)
        translate(t)
    except NotLoweredError as reason:
        try:
            external(t.builder, t.step)
        except NotLoweredError as other:
            raise UnsupportedOperatorsError(
                [(t.step.name, t.kind, str(reason if translate else other))],
                "neither Arenite nor ONNX Runtime runs this operator",
            ) from other
        t.builder.fallbacks[t.step.name] = f"{t.kind} ({reason})"


_OF_DOUBLES = frozenset(
    {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators that we run on 64-bit floats: they convert or move them."""


def _check_doubles(t: OnnxTranslation) -> None:
    """Leave 64-bit floats to ONNX Runtime.

    Raises:
        NotLoweredError: The step reads or makes some.
    """
    tensors = t.builder.model.tensors
    names = (*t.step.reads, *t.step.writes)
    if t.kind not in _OF_DOUBLES and any(tensors[n].dtype is DType.FLOAT64 for n in names):
        raise NotLoweredError("element type float64")


def _by_rows(model: Program, name: str) -> Order:
    """Return the order that puts the axis first along which a cache grows."""
    growing = {each.name for each in model.dimensions if each.grows}
    shape = model.tensors[name].shape
    first = next(n for n, each in enumerate(shape) if growing & Expression.of(each).names)
    return (first, *(axis for axis in range(len(shape)) if axis != first))


def _input_order(model: Program, name: str) -> Order:
    """Return channels last for an input that an image operator reads first, else as written."""
    rank = len(model.tensors[name].shape)
    readers: dict[str, list[Step]] = {}
    for step in model.steps:
        for read in step.reads:
            readers.setdefault(read, []).append(step)
    seen: set[str] = set()
    pending = [name]
    while rank == 4 and pending:
        current = pending.pop()
        for step in readers.get(current, ()):
            layout = TRANSLATORS.layout(step.operator.label)
            if layout is InputLayout.CHANNELS_LAST and step.inputs[0] == current:
                return channels_last(rank)
            if layout is InputLayout.ANY and step.name not in seen:
                seen.add(step.name)
                pending.append(step.outputs[0])
    return as_written(rank)
