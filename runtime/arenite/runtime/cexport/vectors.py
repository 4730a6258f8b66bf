"""Inputs with the outputs that they must lead to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Vectors:
    """Inputs with the outputs that they must lead to.

    Attributes:
        inputs: An array for each input, by its name in the model, as it is stored.
        outputs: An array for each output, likewise.
        reference: What computed the outputs.
        tolerance: Most units in which bytes differ; of floats, most of 1 and of their value.
    """

    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]
    reference: str
    tolerance: float = 0.0
