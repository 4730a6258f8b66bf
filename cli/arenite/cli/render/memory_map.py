"""The plan as a picture: time across, address up, one colour or letter a record.

With colours every cell is cut into an upper and a lower half, so the picture is twice as
fine as its rows; without, a letter fills the cells of its record.
"""

from string import ascii_lowercase, ascii_uppercase

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from arenite.cli.render.axes import Grid, TimeScale, colour_apart, framed, rasterise
from arenite.cli.render.facts import name
from arenite.pipeline.base import both, elided, grouped, plural, printable
from arenite.planner import Plan, Problem

NUM_ROWS = 20
_LEGEND_LENGTH = 8
# What TFLite names a fused operator's output after can be hundreds of characters long.
_LEGEND_NAME_LENGTH = 32
FREE = "·"

PALETTE = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f",
    "#a0cbe8", "#ffbe7d", "#8cd17d", "#ff9d9a", "#d4a6c8", "#bab0ac",
)  # fmt: skip


def draw(
    problem: Problem, plan: Plan, width: int, height: int = NUM_ROWS, *, colour: bool = False
) -> RenderableType:
    """Return the map and the legend of the largest records to be seen.

    Args:
        width: Columns, the axis included.
        height: Rows of the map, without axis and legend.
        colour: Whether colours reach the reader.
    """
    if not plan.height:
        return Text("The arena is empty.")
    records = problem.records
    scale = TimeScale.fit(problem.num_steps, width)
    grid = rasterise(problem, plan, scale, 2 * height if colour else height)
    visible = {cell for row in grid for cell in row}
    ranking = sorted(
        range(len(records)), key=lambda index: (index not in visible, -records[index].size)
    )
    legend = dict(zip(ranking[:_LEGEND_LENGTH], ascii_uppercase, strict=False))
    if colour:
        styles = {
            record: PALETTE[chosen]
            for record, chosen in colour_apart(grid, ranking, len(PALETTE)).items()
        }
        rows = colour_rows(grid, styles, legend)
    else:
        styles = {}
        others = colour_apart(grid, ranking[_LEGEND_LENGTH:], len(ascii_lowercase))
        letters = legend | {record: ascii_lowercase[chosen] for record, chosen in others.items()}
        rows = [
            Text("".join(FREE if cell is None else letters[cell] for cell in row)) for row in grid
        ]
    return Group(framed(rows, plan.height, scale), Text(), _legend(problem, plan, legend, styles))


def colour_rows(grid: Grid, styles: dict[int, str], legend: dict[int, str]) -> list[Text]:
    """Return the cells of a grid as text, two above each other in one letter.

    Args:
        legend: Letters of the records named in the middle of their cells.
    """
    labels = _label_cells(grid, legend)
    rows: list[Text] = []
    for row in range(len(grid) // 2):
        text = Text()
        halves = zip(grid[2 * row], grid[2 * row + 1], strict=True)
        for column, (upper, lower) in enumerate(halves):
            if upper is None and lower is None:
                text.append(" ")
            elif upper is None:
                text.append("▄", styles[lower])  # type: ignore[index]  # lower is not None
            elif lower is None:
                text.append("▀", styles[upper])
            elif upper == lower:
                text.append(labels.get((row, column), " "), f"bold black on {styles[upper]}")
            else:
                text.append("▀", f"{styles[upper]} on {styles[lower]}")
        rows.append(text)
    return rows


def _label_cells(grid: Grid, legend: dict[int, str]) -> dict[tuple[int, int], str]:
    """Return the cell in the middle of each record of the legend, where it fills cells."""
    cells: dict[int, list[tuple[int, int]]] = {}
    for row in range(len(grid) // 2):
        for column, (upper, lower) in enumerate(
            zip(grid[2 * row], grid[2 * row + 1], strict=True)
        ):
            if upper is not None and upper == lower and upper in legend:
                cells.setdefault(upper, []).append((row, column))
    labels: dict[tuple[int, int], str] = {}
    for record, own in cells.items():
        rows = sorted({row for row, _ in own})
        middle = rows[len(rows) // 2]
        columns = [column for row, column in own if row == middle]
        labels[middle, columns[len(columns) // 2]] = legend[record]
    return labels


def _legend(
    problem: Problem, plan: Plan, legend: dict[int, str], styles: dict[int, str]
) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold", ratio=1)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    for index, letter in legend.items():
        record = problem.records[index]
        style = f"bold black on {styles[index]}" if styles else ""
        table.add_row(
            Text(f" {letter} ", style),
            name(elided(printable(record.name), _LEGEND_NAME_LENGTH)),
            both(record.size),
            f"at {grouped(plan.offsets[index])}",
            f"steps [{record.start}, {record.end})",
        )
    others = len(problem.records) - len(legend)
    if others:
        table.add_row("", Text(f"and {plural(others, 'more record')}", "dim"))
    return table
