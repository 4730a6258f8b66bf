"""A result of `arenite compress --json`, for the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from arenite.planner.errors import FileError
from arenite.planner.files import read_json

_MAX_MEBIBYTES = 64
_Value = TypeVar("_Value")


class CompressionResultError(FileError):
    """A file is no result of a compression."""

    remedy = "; make it with arenite compress ... --json"


@dataclass(frozen=True, slots=True)
class CompressedLayer:
    """A layer.

    Attributes:
        name: Of its weights.
        size: Bytes before.
        coded: Bytes after.
        kept: Share of its weights that are not 0.
        bits: Of a shared weight; 0 where values were left as they were.
    """

    name: str
    size: int
    coded: int
    kept: float
    bits: int


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """A model.

    Attributes:
        model: Name of its file, without folders.
        layers: The largest first.
        output_error: Relative distance of its outputs after the last stage; None if unknown.
        accuracy: Before and after; None where there were no labels.
    """

    model: str
    layers: tuple[CompressedLayer, ...]
    output_error: float | None
    accuracy: tuple[float, float] | None

    @property
    def size(self) -> int:
        """Bytes of the weights before."""
        return sum(layer.size for layer in self.layers)

    @property
    def coded(self) -> int:
        """Bytes of the weights after."""
        return sum(layer.coded for layer in self.layers)


def read_compression(path: Path) -> CompressionResult:
    """Return the compression that a file states.

    Raises:
        CompressionResultError: It cannot be read, or is something else.
    """
    document = read_json(path, _MAX_MEBIBYTES, CompressionResultError)
    try:
        layers = [_layer(each) for each in _of(list, document["layers"])]
        stages = [_of(dict, stage) for stage in _of(list, document["stages"])]
        name = Path(_of(str, document["model"])).name
        distance = _share(stages[-1]["error"]) if stages else None
        accuracies = [stage["accuracy"] for stage in stages]
        accuracy = None
        if len(stages) > 1 and None not in accuracies:
            accuracy = (_share(accuracies[0]), _share(accuracies[-1]))
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise CompressionResultError(f"no result of a compression: {error}", path=path) from error
    return CompressionResult(
        name, tuple(sorted(layers, key=lambda layer: -layer.size)), distance, accuracy
    )


def _layer(value: Mapping[str, object]) -> CompressedLayer:
    weights = _of(int, value["weights"])
    kept, bits, coded = (_of(int, value[key]) for key in ("kept", "bits", "coded_bytes"))
    if not 0 <= kept <= weights or not weights > 0 or coded < 0 or not 0 <= bits <= 8:
        raise ValueError(f"layer {value['name']!r} has sizes or bits out of range")
    return CompressedLayer(_of(str, value["name"]), 4 * weights, coded, kept / weights, bits)


def _of(kind: type[_Value], value: object) -> _Value:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{type(value).__name__} where {kind.__name__} was expected")
    return value


def _share(value: object) -> float:
    number = float(_of(int, value)) if isinstance(value, int) else _of(float, value)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{number} is not a finite number from 0")
    return number
