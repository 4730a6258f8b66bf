"""Operators that the core does not run: models of one operator for ONNX Runtime."""

from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.planner.importers.onnx.reader import operator_model
from arenite.planner.operators.imported import Imported
from arenite.planner.program import Step
from arenite.runtime.lowering.builder import Builder, Value
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.lowering.types import KNOWN_TYPES
from arenite.runtime.operators.external import External
from arenite.runtime.targets.onnxruntime.stock import stock_options, stock_session


def external(builder: Builder, step: Step) -> None:
    """Emit the step that ONNX Runtime runs for a step of the model.

    Raises:
        NotLoweredError: It has tensors of a type that the core does not know, makes as much as
            its data say, is no node of the file, or ONNX Runtime has no kernel for it.
        MissingDataError: Weights of its subgraphs lie in a file that is not as stated.
    """
    if isinstance(step.operator, Imported) and step.operator.is_bound:
        raise NotLoweredError(
            "how much it makes depends on the data, so the shapes behind it change from run to run"
        )
    tensors = builder.model.tensors
    for name in (*step.reads, *step.writes):
        if tensors[name].dtype not in KNOWN_TYPES:
            raise NotLoweredError(f"it works on {tensors[name].dtype.label}")
    single = operator_model(builder.model, step)
    if single is None:
        raise NotLoweredError("the file has no node for it")
    refusal = _why_refused(single.model)
    if refusal is not None:
        raise NotLoweredError(refusal)
    sources: list[Value | None] = [
        builder.as_written(builder.value(name), step.name) for name in single.inputs
    ]
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
