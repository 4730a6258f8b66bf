"""Scores of classes, and the names of the classes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arenite.planner.errors import FileError
from arenite.runtime import SessionPort

Array: TypeAlias = NDArray[Any]

_FEWEST = 10
"""Scores that look like classes though nobody named them."""


class LabelsError(FileError):
    """A file does not name the classes."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of the classes, in their order, and the file they are from."""

    path: Path
    names: tuple[str, ...]

    def of(self, num_classes: int) -> tuple[str, ...]:
        """Return the names of so many classes.

        Many networks leave out the first class of ImageNet's list, the background.

        Raises:
            LabelsError: There are more or fewer names.
        """
        if len(self.names) == num_classes:
            return self.names
        if len(self.names) == num_classes + 1 and self.names[0].lower() == "background":
            return self.names[1:]
        raise LabelsError(
            f"names {len(self.names)} classes; the model scores {num_classes}", path=self.path
        )


@dataclass(frozen=True, slots=True)
class Likely:
    """A class that a model finds likely.

    Attributes:
        label: Its name; empty if it has none.
        score: The output as it is; integers are not scaled.
    """

    index: int
    label: str
    score: float


def read_labels(path: Path) -> Labels:
    """Return the names of the classes: one a line.

    Raises:
        LabelsError: The file is not text, or names nothing.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LabelsError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise LabelsError("is not text in UTF-8; give one name a line", path=path) from error
    if not text.strip():
        raise LabelsError("names no class", path=path)
    return Labels(path, tuple(line.strip() for line in text.rstrip().split("\n")))


def check_labels(labels: Labels, ports: Sequence[SessionPort]) -> None:
    """Return if the labels fit the outputs; asked before the model runs.

    Raises:
        LabelsError: No output is a row of scores, or there are more or fewer of them.
    """
    if len(ports) != 1 or not _is_row(ports[0].shape):
        shapes = ", ".join("x".join(map(str, port.shape)) or "a scalar" for port in ports)
        raise LabelsError(
            f"the model scores no classes; its outputs are {shapes}", path=labels.path
        )
    labels.of(math.prod(ports[0].shape))


def likeliest(
    outputs: Mapping[str, Array], labels: Labels | None, num_wanted: int
) -> tuple[Likely, ...]:
    """Return the best classes; none if there are no labels and no output looks like classes."""
    if len(outputs) != 1:
        return ()
    (scores,) = outputs.values()
    is_numeric = scores.dtype.kind in "fiu"
    if not _is_row(scores.shape) or not is_numeric or (labels is None and scores.size < _FEWEST):
        return ()
    flat = scores.reshape(-1).astype(np.float64)
    names = ("",) * flat.size if labels is None else labels.of(flat.size)
    best = np.argsort(-flat, kind="stable")[:num_wanted]
    return tuple(Likely(int(index), names[index], float(flat[index])) for index in best)


def _is_row(shape: tuple[int, ...]) -> bool:
    """Tell whether all lies along one axis, as in 1 x 1000 and 1 x 1000 x 1 x 1."""
    return math.prod(shape) == max(shape, default=0) > 1
