"""Two maps of one network side by side, as a picture that any page can show: no script, no font.

Both have the same scale of addresses, so that the empty part is the gain.
"""

from collections.abc import Iterator, Sequence
from html import escape

from arenite.pipeline.base.text import elided, exact, plural, printable
from arenite.pipeline.report.colours import Groups
from arenite.pipeline.report.row_map import RowMap
from arenite.planner.units import format_size

_WIDTH, _HEIGHT = 420, 250  # of a map
_LEFT, _TOP, _BETWEEN = 12, 46, 36
_LINE = 22  # of the key
_FINE = 10  # whole numbers of tenths of a pixel are short
_NAME_LENGTH = 24
_COLUMN = 164  # of the key
_CROWDED = 150  # turns beyond which outlines would hide the rectangles
_STYLE = (
    ".p{fill:#fff}text{font:13px system-ui,sans-serif;fill:#1d2126}.s{fill:#5c646e}"
    ".b{stroke:#fff;stroke-width:7}.l{stroke:#8a8f96;fill:none}"
    ".h{stroke:#b3401f;stroke-dasharray:5 4}"
    "@media(prefers-color-scheme:dark){.p{fill:#14171b}text{fill:#e9e7e2}.s{fill:#a2aab4}"
    ".h{stroke:#f0895f}.b{stroke:#14171b}}"
)


def as_svg(name: str, maps: Sequence[tuple[str, RowMap]]) -> str:
    """Return the picture.

    Args:
        maps: The title and the memory map of each.
    """
    groups = Groups.of_maps(rows for _, rows in maps)
    top = max(1, *(rows.height for _, rows in maps))
    width = 2 * _LEFT + len(maps) * _WIDTH + (len(maps) - 1) * _BETWEEN
    columns = (width - 2 * _LEFT) // _COLUMN
    key = _TOP + _HEIGHT + 40
    height = key + _LINE * -(-len(groups.names) // columns) - 8
    said = ", ".join(f"{title} in {exact(rows.height)}" for title, rows in maps)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}">',
        f"<title>{escape(printable(name))}: {said}</title><style>{_STYLE}</style>"
        f'<rect class="p" width="{width}" height="{height}"/>',
    ]
    for number, (title, rows) in enumerate(maps):
        left = _LEFT + number * (_WIDTH + _BETWEEN)
        parts += _map(title, rows, groups, left, top)
    for number, (label, colour) in enumerate(zip(groups.names, groups.colours, strict=True)):
        x, y = _LEFT + number % columns * _COLUMN, key + number // columns * _LINE
        parts.append(
            f'<rect x="{x}" y="{y - 11}" width="13" height="13" rx="2" fill="{colour}"/>'
            f'<text x="{x + 19}" y="{y}">{escape(elided(label, _NAME_LENGTH))}</text>'
        )
    return "\n".join((*parts, "</svg>\n"))


def _map(title: str, rows: RowMap, groups: Groups, left: int, top: int) -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    yield (
        f'<text x="{left}" y="18" font-weight="600">{escape(title)}: '
        f"{format_size(rows.height)}</text>"
        f'<text class="s" x="{left}" y="36">{exact(rows.height)}, '
        f"{plural(rows.turns, 'turn')}</text>"
    )
    yield f'<g transform="translate({left} {bottom}) scale({1 / _FINE} -{1 / _FINE})">'
    across, up = _FINE * _WIDTH / max(1, rows.turns), _FINE * _HEIGHT / top
    for operators, colour in _by_colour(rows, groups):
        path = "".join(_rectangles(rows, operators, across, up))
        apart = ' class="b"' if rows.turns <= _CROWDED else ""
        yield f'<path{apart} fill="{colour}" d="{path}"/>'
    yield "</g>"
    y = bottom - round(rows.height * _HEIGHT / top)
    yield f'<path class="h" d="M{left} {y}h{_WIDTH}"/>'
    yield f'<path class="l" d="M{left} {_TOP}V{bottom}h{_WIDTH}"/>'
    yield f'<text class="s" x="{left}" y="{bottom + 17}">addresses up, turns across</text>'


def _by_colour(rows: RowMap, groups: Groups) -> Iterator[tuple[frozenset[int], str]]:
    """Yield the operators of each colour that the map has."""
    for group, colour in enumerate(groups.colours):
        found = frozenset(
            place for place, name in enumerate(rows.operators) if groups.index[name] == group
        )
        if found:
            yield found, colour


def _rectangles(
    rows: RowMap, operators: frozenset[int], across: float, up: float
) -> Iterator[str]:
    columns = (rows.starts, rows.ends, rows.bottoms, rows.tops, rows.makers)
    for start, end, low, high, maker in zip(*(each.tolist() for each in columns), strict=True):
        if maker in operators:
            x, right = round(start * across), round(end * across)
            y, above = round(low * up), round(high * up)
            yield f"M{x} {y}h{right - x}v{above - y}h{x - right}z"
