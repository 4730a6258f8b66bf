"""Which constants of a program are weights that can be trained."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from arenite.planner import DType, Program, TensorKind
from arenite.planner.operators import Imported
from arenite.training.errors import NothingToTrainError

_BOTH, _SECOND, _SCALE_AND_BIAS, _LAYER = (0, 1), (1,), (1, 2), (1, 2, 3)

_FACTORS = frozenset({"Add", "Div", "Mul", "Sub", "Sum"})

POSITIONS: Final[Mapping[str, tuple[int, ...]]] = {
    **dict.fromkeys((*sorted(_FACTORS), "MatMul"), _BOTH),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization", "LayerNormalization"),
                    _SCALE_AND_BIAS),
    **dict.fromkeys(("Conv", "ConvTranspose"), _SCALE_AND_BIAS),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _LAYER),
    "Gather": (0,),
    "Gemm": (0, 1, 2),
    "PRelu": _SECOND,
}  # fmt: skip
"""Inputs of operators that are weights; other constants are bounds, statistics or factors."""


def parameters(program: Program) -> tuple[str, ...]:
    """Return the names of the trainable constants, in the order of their first reader.

    These are floating-point constants in the positions where operators read weights, scalars
    among them: `--train-only` may name them.
    """
    found: dict[str, None] = {}
    for step in program.steps:
        if isinstance(step.operator, Imported):
            for position in POSITIONS.get(step.operator.op_type, ()):
                name = step.inputs[position] if position < len(step.inputs) else ""
                if name and _is_weight(program, name):
                    found[name] = None
    return tuple(found)


def chosen(program: Program, globs: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the parameters to train.

    Args:
        program: The model.
        globs: Patterns of names; empty for all parameters but scalars that are added or
            multiplied, which are factors rather than weights.

    Raises:
        NothingToTrainError: There are none, or a pattern matches none.
    """
    known = parameters(program)
    if not globs:
        layers = _read_by_layers(program)
        found = tuple(
            name for name in known if program.tensors[name].num_elements > 1 or name in layers
        )
        if not found:
            raise NothingToTrainError("the model has no weights to train", known)
        return found
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in known):
            raise NothingToTrainError(f"no parameter is called {glob!r}", known)
    return tuple(name for name in known if any(fnmatchcase(name, glob) for glob in globs))


def _read_by_layers(program: Program) -> set[str]:
    """Return the weights of operators other than additions and multiplications."""
    return {
        name
        for step in program.steps
        if isinstance(step.operator, Imported) and step.operator.op_type not in _FACTORS
        for name in step.reads
    }


def _is_weight(program: Program, name: str) -> bool:
    tensor = program.tensors[name]
    return tensor.kind is TensorKind.CONSTANT and tensor.dtype in (DType.FLOAT32, DType.FLOAT64)
