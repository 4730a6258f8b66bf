"""The file of a scan: an interrupted scan resumes from it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from arenite.planner.errors import FileError
from arenite.planner.files import read_json, write_atomically

if TYPE_CHECKING:
    from arenite.compression import Sensitivity

_MAX_MEBIBYTES = 64


class ScanFileError(FileError):
    """A file does not hold the findings of a scan of this model."""

    remedy = "; name another file for --scan"


@dataclass(frozen=True, slots=True)
class ScanFile:
    """Where a scan saves its findings.

    Attributes:
        digest: SHA-256 of the model.
        samples: The data it is evaluated on.
    """

    path: Path
    digest: str
    samples: str

    def read(self) -> "list[Sensitivity]":
        """Return the findings; none if there is no file yet.

        Raises:
            ScanFileError: It is of another model or other samples, or something else.
        """
        from arenite.compression import Sensitivity

        if not self.path.exists():
            return []
        document = read_json(self.path, _MAX_MEBIBYTES, ScanFileError)
        try:
            if (document["digest"], document["samples"]) != (self.digest, self.samples):
                raise ScanFileError("made for another model, or on other samples", path=self.path)
            return [
                Sensitivity(layer, _losses(losses)) for layer, losses in document["losses"].items()
            ]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            reason = "is not a file of --scan"
            raise ScanFileError(reason, path=self.path) from error

    def write(self, found: "list[Sensitivity]") -> None:
        """Save the findings, whole or not at all."""
        losses = {
            each.layer: {
                density: loss if isfinite(loss) else None for density, loss in each.losses.items()
            }
            for each in found
        }
        document = {"digest": self.digest, "samples": self.samples, "losses": losses}
        write_atomically(self.path, json.dumps(document, indent=1).encode())


def _losses(stated: Mapping[str, object]) -> dict[float, float]:
    """Return the losses of a layer, at the densities that a scan tries and in its order.

    Raises:
        AttributeError, KeyError, OverflowError, TypeError, ValueError: They are not of a scan.
    """
    from arenite.compression import DENSITIES

    losses = {float(key): _loss(value) for key, value in stated.items()}
    if len(stated) != len(DENSITIES):
        raise ValueError(f"{len(stated)} densities instead of {len(DENSITIES)}")
    return {density: losses[density] for density in sorted(DENSITIES, reverse=True)}


def _loss(value: object) -> float:
    """Return a loss; null stands for outputs that are not finite."""
    if value is None:
        return inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)
