"""An earlier comparison as a baseline: which arenas grew since, and by how much."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from arenite.pipeline.report.results import ModelReport
from arenite.planner.errors import FileError
from arenite.planner.files import read_json

_MAX_MEBIBYTES = 256
_MAX_NUMBER = (1 << 63) - 1


class BaselineError(FileError):
    """The baseline is not to be used."""

    remedy = "; make it with arenite compare ... --json"


@dataclass(frozen=True, slots=True)
class Difference:
    """The lowest arena of one model, then and now.

    Attributes:
        before: Bytes; None where the baseline does not have the model.
        now: Bytes; None where the model is no longer compared.
    """

    model: str
    before: int | None
    now: int | None

    @property
    def growth(self) -> float:
        """Share of the old arena by which it grew; below 0 where it shrank."""
        if self.before is None or self.now is None or self.now == self.before:
            return 0.0
        return self.now / self.before - 1 if self.before else float("inf")


def read_baseline(path: Path) -> dict[str, int]:
    """Return the lowest arena of each model in a file of `compare --json`.

    Raises:
        BaselineError: It cannot be read or is something else.
    """
    document = read_json(path, _MAX_MEBIBYTES, BaselineError)
    models = document.get("models") if isinstance(document, dict) else None
    if not isinstance(models, list):
        raise BaselineError("no list 'models'", path=path)
    lowest: dict[str, int] = {}
    for index, model in enumerate(models):
        where = f"models[{index}]"
        name = model.get("model") if isinstance(model, dict) else None
        if not isinstance(name, str):
            raise BaselineError(f"{where} has no text 'model'", path=path)
        if name in lowest:
            raise BaselineError(f"{where} names {name!r} a second time", path=path)
        results = model.get("results")
        if not isinstance(results, list) or not results:
            raise BaselineError(f"{where} has no 'results'", path=path)
        lowest[name] = min(_height(path, where, result) for result in results)
    return lowest


def _height(path: Path, where: str, result: object) -> int:
    height = result.get("height") if isinstance(result, dict) else None
    if isinstance(height, bool) or not isinstance(height, int) or not 0 <= height <= _MAX_NUMBER:
        raise BaselineError(f"{where} has a result without a 'height' in bytes", path=path)
    return height


def differences(baseline: dict[str, int], reports: Iterable[ModelReport]) -> list[Difference]:
    """Return the difference of each model, those of the baseline alone at the end."""
    now = {report.model: report.winner.height for report in reports if report.winner is not None}
    found = [Difference(model, baseline.get(model), height) for model, height in now.items()]
    return found + [
        Difference(model, height, None) for model, height in baseline.items() if model not in now
    ]
