"""All the page says, word for word: the template adds nothing but markup."""

from dataclasses import dataclass
from typing import TypeAlias

from arenite.pipeline.report.results import FailedModel

Sortable: TypeAlias = str | float


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        value: The key of its column for sorting.
        title: Shown when the pointer rests on it.
        heat: 0 for the best to 4, where the cell is coloured; None where it is not.
    """

    text: str
    value: Sortable
    title: str = ""
    heat: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in one glance."""

    question: str
    answer: str
    more: str
    names: bool = False


@dataclass(frozen=True, slots=True)
class Headline:
    """The summary at the top of the page.

    Attributes:
        subject: The model, where there is one.
        before: The sentence up to its figure.
    """

    subject: str
    before: str
    figure: str
    after: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """An arena beside the bytes without reuse.

    Attributes:
        share: Percentage of the bar that is the arena.
        bound: Percentage at which the bound stands.
        value: The key of its column for sorting.
    """

    share: str
    bound: str
    value: float


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in the table of models.

    Attributes:
        name: Elided where it is long.
        bar: None where there is no plan.
        arena: Bytes of the lowest plan.
        saved: Against no reuse.
        above: Distance to the bound.
        bands: Bytes of the least program in bands of rows.
        strategy: The quickest that made the lowest plan.
    """

    name: str
    full_name: str
    bar: Bar | None
    arena: Cell
    saved: Cell
    above: Cell
    bands: Cell
    strategy: Cell
    limit: Cell


@dataclass(frozen=True, slots=True)
class StandingRow:
    """A strategy over all models.

    Attributes:
        wins: Whether it is the lowest on every model.
        figures: Models won, the worst gap, the time, then the gap on each model.
    """

    strategy: str
    wins: bool
    figures: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """The tables over several models.

    Attributes:
        has_bands: Whether any of them runs in bands of rows.
        columns: Name and whole name of each model, as the columns of the standings.
    """

    models: tuple[ModelRow, ...]
    has_bands: bool
    columns: tuple[tuple[str, str], ...]
    standings: tuple[StandingRow, ...]


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """A strategy on one model.

    Attributes:
        kind: Its kind: offsets or objects; `peer` for another tool.
        figures: Arena, distance to the bound, saved, time, proof.
        wins: Whether no strategy is lower.
        shown: Whether the page holds its map.
        is_peer: Whether it is another tool.
    """

    strategy: str
    kind: str
    figures: tuple[Cell, ...]
    wins: bool = False
    shown: bool = False
    is_peer: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """The interactive figures of a model.

    Attributes:
        choices: Name and label of each strategy whose map can be shown.
        loads: Colour and meaning of the parts of a load; none if unknown.
    """

    choices: tuple[tuple[str, str], ...]
    loads: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Trade:
    """The arenas of a model in bands of rows, and their price.

    Attributes:
        rows: The whole program first, then ever lower ones.
        remark: The origin of the times.
        about: The least program, in a few words.
        binding: The tensors that limit it.
        has_map: Whether the page holds its map.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remark: str
    about: str
    binding: str
    has_map: bool


@dataclass(frozen=True, slots=True)
class Layers:
    """A table with bars, such as one of layers.

    Attributes:
        columns: Titles; none where the table needs none.
        rows: Texts of the columns, then the percentage of the bar.
    """

    title: str
    summary: str
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True, slots=True)
class ModelSection:
    """All about one model.

    Attributes:
        figures: Label, text and title of each figure of its lowest plan.
        advice: How to lower it further; empty if the headline has it.
        trade: Memory against time; None where that is not known.
        figure: The maps; None where there is nothing to draw.
        strategies: One row a strategy, then the peers.
    """

    name: str
    figures: tuple[tuple[str, str, str], ...]
    advice: str
    trade: Trade | None
    figure: Figure | None
    strategies: tuple[StrategyRow, ...]
    remarks: tuple[str, ...]
    layers: tuple[Layers, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageModel:
    """The page.

    Attributes:
        headline: None where there is no plan at all.
        overview: Over several models; None for one.
        digests: Name and SHA-256 of each model.
    """

    title: str
    headline: Headline | None
    failures: tuple[FailedModel, ...]
    overview: Overview | None
    sections: tuple[ModelSection, ...]
    command: str
    made_with: str
    digests: tuple[tuple[str, str], ...]
