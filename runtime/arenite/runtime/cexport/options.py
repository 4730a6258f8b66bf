"""How a model is written as C."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Rounding: TypeAlias = Literal["double", "single"]

LARGE_WEIGHTS = 1 << 20
"""Bytes of constants from which on they are a binary file beside the source."""


@dataclass(frozen=True, slots=True)
class Options:
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
