"""The colours of operators: few, told apart, the same on every drawing of a page."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from arenite.pipeline.base.text import printable
from arenite.pipeline.report.row_map import RowMap

# Paul Tol's "light" scheme: told apart by the colour-blind, on white and on black.
PALETTE = (
    "#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#99ddff", "#bbcc33", "#aaaa00",
)  # fmt: skip
OTHER = "#bbbbbb"


@dataclass(frozen=True, slots=True)
class Groups:
    """Names that share a colour, those of the most bytes first.

    Attributes:
        names: Of the groups; those beyond the palette share the last.
        colours: One for each name.
        index: The group of each name that was given.
    """

    names: tuple[str, ...]
    colours: tuple[str, ...]
    index: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Self:
        """Group names by their bytes."""
        ranked = sorted(sizes, key=lambda name: (-sizes[name], name))
        shown, rest = ranked[: len(PALETTE)], ranked[len(PALETTE) :]
        index = {name: group for group, name in enumerate(shown)}
        return cls(
            (*map(printable, shown), *(["others"] if rest else [])),
            (*PALETTE[: len(shown)], *([OTHER] if rest else [])),
            index | dict.fromkeys(rest, len(shown)),
        )

    @classmethod
    def of_maps(cls, maps: Iterable[RowMap]) -> Self:
        """Group the operators of several maps; those with the largest shares are not grey."""
        sizes: Counter[str] = Counter()
        for each in maps:
            sizes.update(each.shares)
        return cls.of(sizes)
