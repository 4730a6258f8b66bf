"""The file of a scan: an interrupted scan resumes from it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arenite.planner.errors import FileError
from arenite.planner.files import read_json, write_atomically

if TYPE_CHECKING:
    from arenite.compression.sensitivity import Sensitivity

_MAX_MEBIBYTES = 64


class ScanFileError(FileError):
    """A file does not hold the findings of a scan of this model."""

    remedy = "; name another file for --scan"


@dataclass(frozen=True, slots=True)
class ScanFile:
    """Where a scan saves its findings.

    Attributes:
        path: The file.
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
        from arenite.compression.sensitivity import Sensitivity

        if not self.path.exists():
            return []
        document = read_json(self.path, _MAX_MEBIBYTES, ScanFileError)
        try:
            if (document["digest"], document["samples"]) != (self.digest, self.samples):
                raise ScanFileError("made for another model, or on other samples", path=self.path)
            return [
                Sensitivity(str(layer), {float(key): float(loss) for key, loss in losses.items()})
                for layer, losses in document["losses"].items()
            ]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = "does not hold the findings of a scan"
            raise ScanFileError(reason, path=self.path) from error

    def write(self, found: "list[Sensitivity]") -> None:
        """Save the findings, whole or not at all.

        Raises:
            OutputError: The file cannot be written.
        """
        losses = {each.layer: dict(each.losses) for each in found}
        document = {"digest": self.digest, "samples": self.samples, "losses": losses}
        write_atomically(self.path, json.dumps(document, indent=1).encode())
