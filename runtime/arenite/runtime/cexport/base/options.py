"""How a model is written as C, and what its test checks."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

Rounding: TypeAlias = Literal["double", "single"]

LARGE_WEIGHTS = 1 << 20
"""Bytes of constants from which on they are a binary file beside the source."""


@dataclass(frozen=True, slots=True)
class COptions:
    """How a model is written as C.

    Attributes:
        name: Prefix of every name; by default the model's file name.
        rounding: How products of integers are rounded: `double` as TensorFlow Lite Micro does,
            `single` as it does when it is built with TFLITE_SINGLE_ROUNDING.
        large_weights: Bytes of constants from which on they are a binary file.
        version: Of what writes it, for the manifests.
    """

    name: str | None = None
    rounding: Rounding = "double"
    large_weights: int = LARGE_WEIGHTS
    version: str = "0.1.0"


class Extension(StrEnum):
    """What a processor computes several bytes at once with."""

    NONE = "none"
    DSP = "dsp"
    MVE = "mve"


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
