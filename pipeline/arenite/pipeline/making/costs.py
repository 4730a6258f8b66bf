"""Costs of a machine: measured on it once and kept, stated in a file, or assumed."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from arenite.pipeline.base.errors import CostsFileError
from arenite.planner import Costs, Link
from arenite.planner.errors import about_file
from arenite.planner.programs import PRESETS
from arenite.runtime import processor_name

DESKTOP = Costs(30e9, 20e9, Link(1e9, 1e9), step_s=3e-7)
"""A core of a desktop: 30 thousand million multiply-adds a second, 20 GB/s of cache and memory."""

HERE, _DEFAULT = "here", "pcie"
"""This machine, and the preset where it was not measured."""

FLOAT, INTEGER = "float32", "int8"
"""Types of elements that machines are measured with."""

_VERSION = 1
_ASSUMED = "assumed ('arenite calibrate' measures yours)"


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Costs of a machine, by the type of a model's elements.

    Attributes:
        words: Whose costs they are, for people.
        by_type: Costs by name of type; none for a machine that is assumed.
        origin: Whether they are measured or stated.
    """

    words: str
    by_type: Mapping[str, Costs] = field(default_factory=dict)
    origin: str = "stated"

    def of(self, label: str) -> Costs:
        """Return the costs for models of elements of a type; of another, those of floats."""
        label = INTEGER if label == "uint8" else label
        return self.by_type.get(label) or self.by_type.get(FLOAT) or DESKTOP

    @property
    def link_origin(self) -> str:
        """Where the link comes from: that of a desktop was never measured."""
        return _ASSUMED if self.of(FLOAT).link == DESKTOP.link else self.origin

    @classmethod
    def known(cls, stated: Path | None = None) -> Self:
        """Return the costs of this machine.

        Args:
            stated: A file that states another.

        Raises:
            CostsFileError: A file is not to be used.
        """
        if stated is not None:
            with about_file(stated):
                found = _read(stated)
                name = next(iter(found), None)
                if name is None or len(found) > 1:
                    raise CostsFileError(f"costs of {len(found)} processors, one expected")
            return cls(f"costs of {name}, stated", found[name])
        path = cache_file()
        processor = processor_name()
        if path.is_file():
            with about_file(path):
                found = _read(path)
            if processor in found:
                return cls(f"costs of {processor}, measured", found[processor], "measured")
        return cls(f"costs of a core of a desktop, {_ASSUMED}")


@dataclass(frozen=True, slots=True)
class StatedCosts:
    """Costs, and where they come from.

    Attributes:
        words: Whose they are, for people.
        link_origin: Whether the link is stated, measured or assumed.
    """

    costs: Costs
    words: str
    link_origin: str


def costs_of(machine: str | None, link: Link | None) -> StatedCosts:
    """Return the costs of a machine for models of floats, with another link if one is given.

    Args:
        machine: A preset, or this one; None for this one where it was measured.

    Raises:
        CostsFileError: The stored costs of this machine are damaged.
    """
    known = MachineCosts.known() if machine in (None, HERE) else None
    if known is not None and (machine == HERE or known.by_type):
        found = StatedCosts(known.of(FLOAT), known.words, known.link_origin)
    else:
        name = machine or _DEFAULT
        found = StatedCosts(PRESETS[name], f"speeds of {name}, stated", "stated")
    if link is None:
        return found
    return StatedCosts(replace(found.costs, link=link), found.words, "stated")


def in_speeds(link: Link) -> str:
    """Return how quick a link is, in words."""
    out, back = (
        f"{speed / 1e6:,.{1 if speed < 1e8 else 0}f} MB/s" for speed in (link.out, link.back)
    )
    return f"{out} out, {back} back"


def cache_file() -> Path:
    """Return where costs are kept."""
    folder = os.environ.get("XDG_CACHE_HOME") or ""
    root = Path(folder) if Path(folder).is_absolute() else Path.home() / ".cache"
    return root / "arenite" / "costs.json"


def table(processors: Mapping[str, Mapping[str, Costs]]) -> dict[str, Any]:
    """Return the contents of a file of costs."""
    return {
        "version": _VERSION,
        "processors": {
            name: {label: _as_json(costs) for label, costs in by_type.items()}
            for name, by_type in processors.items()
        },
    }


def with_measured(path: Path, processor: str, by_type: Mapping[str, Costs]) -> str:
    """Return the text of a file of costs with those of one processor put in or replaced.

    A damaged file is replaced: all it holds can be measured again.
    """
    found: dict[str, Mapping[str, Costs]] = {}
    if path.is_file():
        try:
            found = _read(path)
        except CostsFileError:
            found = {}
    found[processor] = by_type
    return json.dumps(table(dict(sorted(found.items()))), indent=1) + "\n"


def _as_json(costs: Costs) -> dict[str, Any]:
    fields = asdict(costs)
    speeds = fields.pop("by_operator")
    return {**fields, "by_label": dict(sorted(speeds.items()))}


def _read(path: Path) -> dict[str, Mapping[str, Costs]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CostsFileError(f"cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise CostsFileError(f"not a table of costs of version {_VERSION}")
    try:
        return {
            str(name): {str(label): _costs(entry) for label, entry in by_type.items()}
            for name, by_type in document["processors"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CostsFileError(f"incomplete costs: {error}") from error


def _costs(entry: Mapping[str, Any]) -> Costs:
    link = entry["link"]
    return Costs(
        _number(entry["multiply_adds_per_s"]),
        _number(entry["bytes_per_s"]),
        Link(
            _number(link["out"]), _number(link["back"]), _number(link.get("latency_s", 0.0)),
            duplex=bool(link.get("duplex", True)),
        ),
        {str(label): _number(speed) for label, speed in entry.get("by_label", {}).items()},
        _number(entry.get("step_s", 0.0)),
    )  # fmt: skip


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e30:
        raise TypeError(f"{value!r} is not a number")
    return float(value)
