"""How a model is written as C, and what its test checks."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

ROTATION = 97
"""Elements by which inputs are rotated from one run of a test to the next."""

Rounding: TypeAlias = Literal["double", "single", "even"]

LARGE_WEIGHTS = 8 << 20
"""Bytes of constants from which on they are a binary file beside the source."""


@dataclass(frozen=True, slots=True)
class COptions:
    """How a model is written as C.

    Attributes:
        name: Prefix of every name; by default the model's file name.
        rounding: How products of integers are rounded: `double` as TensorFlow Lite Micro does,
            `single` as it does when it is built with TFLITE_SINGLE_ROUNDING, `even` by scales
            that are floats, halves to the even integer, as ONNX Runtime and our runtime do; None
            for that of the model's format.
        large_weights: Bytes of constants from which on they are a binary file.
        version: Of what writes it, for the manifests.
        is_quick: Whether quick kernels run the layers that they can; else those of less code.
        is_coded: Whether weights that have windows in the arena are coded in flash, and decoded by
            each run; else they are fetched from external flash.
    """

    name: str | None = None
    rounding: Rounding | None = None
    large_weights: int = LARGE_WEIGHTS
    version: str = "0.1.0"
    is_quick: bool = True
    is_coded: bool = False


class Extension(StrEnum):
    """What a processor computes several bytes at once with."""

    NONE = "none"
    DSP = "dsp"
    MVE = "mve"


@dataclass(frozen=True, slots=True)
class Vectors:
    """Inputs of several runs, one behind the other, and the outputs of each.

    Attributes:
        inputs: An array for each input of the first run, by its name in the model, as stored.
        outputs: For each run an array for each output, likewise.
        reference: What computed the outputs.
        units: Largest difference of integers.
        share: Largest difference of floats, in parts of the largest magnitude of the output.
    """

    inputs: Mapping[str, NDArray[Any]]
    outputs: tuple[Mapping[str, NDArray[Any]], ...]
    reference: str
    units: int = 0
    share: float = 1e-5

    def inputs_of(self, run: int) -> dict[str, NDArray[Any]]:
        """Return the inputs of a run: those of the first, each rotated by some elements."""
        return {
            name: np.roll(array.reshape(-1), -run * ROTATION).reshape(array.shape)
            for name, array in self.inputs.items()
        }
