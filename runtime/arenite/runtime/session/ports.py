"""Inputs and outputs of a session, and what may be fed to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.runtime import _core
from arenite.runtime.errors import InputNameError, InputShapeError, InputTypeError

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the model.

    Attributes:
        name: Name in the model.
        dtype: Element type.
        shape: Shape in the model.
        view: View of the elements in the arena, with that shape.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    view: Array


def ports_of(
    native: _core.Session, stated: Sequence[tuple[str, int, Sequence[int]]]
) -> tuple[Port, ...]:
    """Return ports by what the core states of them: name, tensor, and where it has each axis."""
    ports = []
    for name, tensor, permutation in stated:
        stored = native.view(tensor)
        axes = [0] * stored.ndim
        for place, axis in enumerate(permutation):
            axes[axis] = place
        view = stored.transpose(axes)
        ports.append(Port(name, view.dtype, view.shape, view))
    return tuple(ports)


def require_fit(inputs: Mapping[str, Array], ports: Mapping[str, Port]) -> None:
    """Check arrays that are to be fed, by name.

    Raises:
        InputNameError: An input is missing, or there is none of a name.
        InputShapeError: An array has another shape.
        InputTypeError: An array has another element type.
    """
    if inputs.keys() != ports.keys():
        for name in inputs:
            if name not in ports:
                raise InputNameError(name, ports, missing=False)
        raise InputNameError(next(n for n in ports if n not in inputs), ports, missing=True)
    for name, port in ports.items():
        array = np.asarray(inputs[name])
        if array.dtype != port.dtype:
            raise InputTypeError(name, str(array.dtype), str(port.dtype))
        if array.shape != port.shape:
            raise InputShapeError(name, array.shape, port.shape)
