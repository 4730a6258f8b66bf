"""Programs of which steps run in bands of rows: a table of turns, and what each calls."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from arenite.planner import Alias, Program, Step
from arenite.planner.operators import Band, Pieces
from arenite.planner.programs import RowPlaces, RowStep
from arenite.planner.sizes import depends
from arenite.planner.tensors import ROW_AXIS, num_rows, row_bytes
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.layout import ArenaLayout, Interface
from arenite.runtime.cexport.base.ranges import SizeVariables
from arenite.runtime.cexport.base.text import comment
from arenite.runtime.cexport.steps.writer import CFileParts, StepWriter, writers
from arenite.runtime.program.rows import starts_of_rows


def has_kernel_by_rows(program: Program, shifted: frozenset[str], row_step: RowStep) -> bool:
    """Tell whether a step of a program that runs whole can be written by rows instead.

    Args:
        program: The program.
        shifted: Its tensors of bytes without a sign in the model, stored less 128.
        row_step: How the step would run by rows.
    """
    step = row_step.step
    named = {reads.tensor for reads in row_step.reads} | {row_step.result.name}
    if row_step.accumulators:
        source = program.operands(step).source
        if source is not None and depends(source.shape[ROW_AXIS]):
            return False  # it writes the result at the last row that there is, too early
        named.remove(row_step.result.name)
    # Rows that lie apart, wherever: only what is written is of interest.
    rows = {
        name: tuple(2 * row * row_bytes(tensor) for row in range(num_rows(tensor)))
        for name, tensor in program.tensors.items()
        if name in named
    }
    places = dict.fromkeys(program.tensors, 0)
    layout = ArenaLayout(program, places, 0, shifted, rows, has_tables=True)
    sums = "arena" if row_step.accumulators else ""
    try:
        _write(layout, step, 0, CFileParts.empty("trial"), row_step.num_rows, sums)
    except NotWrittenError:
        return False
    return True


def _write(
    layout: ArenaLayout, step: Step, number: int, written: CFileParts, num_rows: int, sums: str
) -> list[str]:
    """Return the calls of a step for the rows from `first` to before `end`.

    Raises:
        NotWrittenError: It cannot be written by rows.
    """
    write = writers().get(type(step.operator))
    if write is None:
        raise NotWrittenError("no C kernel for this operator")
    writer = StepWriter(layout, step, number, written, num_rows=num_rows, sums=sums)
    write(writer)
    return writer.calls


_THIRD_ROWS = "_rows_2 ="
"""In a call that names the rows of more than two tensors."""


@dataclass(slots=True)
class Turns:
    """The turns of a program with banded steps, in order; a step that runs whole has one.

    They are cases of one function: what they hold on the stack does not add up, and nothing lies
    between them and their kernels. One of three tensors has a function of its own: what it hands
    over would else lie beneath every kernel, and those of convolutions are the deepest.

    Attributes:
        layout: Where tensors and their rows lie.
        written: The file.
        interface: States the dimensions.
        table: For each turn the index of its step, its first row and the one after its last.
        cases: For each step what it is and its calls.
    """

    layout: ArenaLayout
    written: CFileParts
    interface: Interface
    table: list[tuple[int, int, int]] = field(default_factory=list)
    cases: list[list[str]] = field(default_factory=list)
    _banded: dict[str, int] = field(default_factory=dict)
    _sizes: SizeVariables = field(init=False)

    def __post_init__(self) -> None:
        self._sizes = self._variables()

    @classmethod
    def of(cls, layout: ArenaLayout, written: CFileParts, interface: Interface) -> "Turns":
        """Return the turns of a program, none so far.

        Args:
            layout: Where its tensors lie.
            written: The file.
            interface: States its dimensions.
        """
        program, rows = layout.program, dict[str, tuple[int, ...]]()
        places = RowPlaces(program)
        wholes = {name: places.whole(name) for name in places.shapes}
        for name, whole in wholes.items():
            own = program.tensors.get(name)
            if own is not None and own.shape == whole.shape and not places.keeps(name):
                continue  # a step takes it in one piece, so its rows lie side by side
            if program.dimensions:
                holder = places.common_holder(places.of(name))
                if holder is not None:
                    wholes[name] = replace(whole, alias=Alias(holder))
                    continue
            starts = starts_of_rows(
                program, places, name, lambda piece: ("", layout.offset(piece))
            )
            rows[name] = tuple(map(int, starts))
        found = layout.with_rows(wholes, rows)
        if wholes:
            counts = {name: (each, f"*{count}") for name, (each, count) in layout.counts.items()}
            found = replace(found, has_tables=True, counts=counts)
        return cls(found, written, interface)

    def add(self, number: int, step: Step) -> None:
        """Add a turn of a banded step; what it calls is written with the first.

        Raises:
            NotWrittenError: The step cannot be written by rows.
        """
        band = step.operator
        assert isinstance(band, Band)
        if band.step not in self._banded:
            self._banded[band.step] = len(self.cases)
            self._add_case(f"{band.label} {comment(band.step)}", self.calls(number, step))
        self.table.append((self._banded[band.step], band.first, band.first + band.rows))

    def add_whole(self, step: Step, calls: Sequence[str]) -> None:
        self.table.append((len(self.cases), 0, 0))
        self._add_case(f"{step.operator.label} {comment(step.name)}", calls)

    def _add_case(self, title: str, calls: Sequence[str]) -> None:
        if not any(_THIRD_ROWS in call for call in calls):
            self.cases.append([f"/* {title} */", *map(self._sizes.filled, calls)])
            return
        name, arguments = f"{self._turn}_{len(self.cases)}", self.interface.arena_parameter
        given = "arena"
        if any("first, end" in call for call in calls):
            arguments, given = f"{arguments}, int32_t first, int32_t end", "arena, first, end"
        sizes = self._variables()
        calls = [sizes.filled(call) for call in calls]
        calls = [*sizes.lines, *calls]
        more = self._parameters(calls)
        self.written.layers += [
            f"KERNEL {name}({', '.join([arguments, *more.values()])})",
            "{", *(f"    {call}" for call in calls), "}",
        ]  # fmt: skip
        self.cases.append([f"/* {title} */", f"{name}({', '.join([given, *more])});"])

    @property
    def _turn(self) -> str:
        """What the names of the functions of turns begin with, or are."""
        return "turn" if self.interface.stage is None else f"{self.interface.name}_turn"

    @property
    def table_name(self) -> str:
        """Name of the table of the turns."""
        return f"{self._turn}s"

    def _variables(self) -> SizeVariables:
        """Return the sizes in a function that is handed its dimensions, and pointers to counts."""
        dimensions, variables = self.interface.dimensions, self.interface.variables
        names = [
            f"(*{name})" if dimension.counted_by else name
            for dimension, name in zip(dimensions, variables, strict=True)
        ]
        return SizeVariables(dimensions, names)

    def _parameters(self, lines: Sequence[str]) -> dict[str, str]:
        """Return the names of the dimensions and counts in some lines, and their declarations."""
        interface, text = self.interface, "\n".join(lines)
        return {
            name: f"int32_t {'*' if dimension.counted_by else ''}{name}"
            for dimension, name in zip(interface.dimensions, interface.variables, strict=True)
            if re.search(rf"\b{name}\b", text)
        }

    def _lines(self) -> list[str]:
        return [*self._sizes.lines, *(line for each in self.cases for line in each)]

    def call(self) -> str:
        """Return the call of one of the turns."""
        used = self._parameters(
            [*self._sizes.lines, *(line for each in self.cases for line in each)]
        )
        given = [f"&{name}" if "*" in text else name for name, text in used.items()]
        return f"run_{self._turn}({', '.join(['arena', 'turn', *given])});"

    def calls(self, number: int, step: Step) -> list[str]:
        """Return what a turn of a banded step calls.

        Raises:
            NotWrittenError: The step cannot be written by rows.
        """
        band = step.operator
        assert isinstance(band, Band)
        sums, num_rows = "", self._rows_of(band.outputs[0])
        if band.sums:
            sums = self.layout.at(self.layout.offset(step.outputs[-1]))
            num_rows = self._rows_of(band.inputs[0])
        original = whole_step(step, band)
        return _write(self.layout, original, number, self.written, num_rows, sums)

    def _rows_of(self, pieces: Pieces | None) -> int:
        assert pieces is not None
        return pieces.shape[ROW_AXIS]

    def definitions(self) -> Iterator[str]:
        """Yield the table of the turns and what runs one of them; nothing without turns."""
        if not self.table:
            return
        largest = max(max(turn) for turn in self.table)
        yield "/* For each turn its step, its first row, and the row after its last. */"
        yield "static const struct {"
        yield f"    {'uint16_t' if largest < 1 << 16 else 'int32_t'} step, first, end;"
        yield f"}} {self.table_name}[] = {{"
        line = "   "
        for turn in self.table:
            item = "{" + ", ".join(map(str, turn)) + "},"
            if len(line) + len(item) + 1 > 98:
                yield line
                line = "   "
            line += f" {item}"
        yield line.rstrip(",")
        yield "};"
        yield ""
        more = self._parameters(self._lines()).values()
        arguments = [self.interface.arena_parameter, "int32_t turn", *more]
        table = f"{self.table_name}[turn]"
        yield f"static void run_{self._turn}({', '.join(arguments)})"
        yield "{"
        yield f"    const int32_t first = {table}.first, end = {table}.end;"
        yield from (f"    {line}" for line in self._sizes.lines)
        yield f"    switch ({table}.step) {{"
        last = len(self.cases) - 1
        for number, (title, *calls) in enumerate(self.cases):
            yield "    default:" if number == last else f"    case {number}:"
            yield from (f"        {line}" for line in (title, *calls, "break;"))
        yield "    }"
        yield "}"


def whole_step(step: Step, band: Band) -> Step:
    """Return the step that makes all rows, of which a step makes some."""
    return replace(
        step, name=band.step, operator=band.operator, inputs=_names(band.inputs),
        outputs=_names(band.outputs),
    )  # fmt: skip


def _names(operands: tuple[Pieces | None, ...]) -> tuple[str, ...]:
    return tuple("" if pieces is None else pieces.tensor for pieces in operands)
