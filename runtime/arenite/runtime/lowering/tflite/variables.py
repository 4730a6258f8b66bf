"""Variables, which the importer has made states."""

from arenite.planner.tensors import TensorKind
from arenite.runtime.lowering.assignments import copy_of
from arenite.runtime.lowering.errors import NotLoweredError
from arenite.runtime.lowering.tflite.registry import translates
from arenite.runtime.lowering.tflite.translation import Translation


@translates("READ_VARIABLE")
def read_variable(t: Translation) -> None:
    """Translate READ_VARIABLE: the state itself, or what was assigned to it before."""
    if t.builder.model.tensors[t.source()].kind is not TensorKind.STATE:
        raise NotLoweredError("its variable is not known before the run")
    value = t.value()
    if t.builder.quantisation(value) == t.builder.stated_quantisation(t.target):
        t.finish(value)
    else:
        t.finish(t.emit(copy_of(value), [value]))


@translates("ASSIGN_VARIABLE")
def assign_variable(t: Translation) -> None:
    """Translate ASSIGN_VARIABLE: the state's value for what follows, and for the next run."""
    if not t.step.outputs:
        raise NotLoweredError("its variable is not known before the run")
    value = t.value()
    if value.shape != t.shape:
        raise NotLoweredError(f"it assigns {value.shape} to a variable of {t.shape}")
    t.builder.assign(t.target, value)
