"""The output of `arenite inspect` for a program file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rich.console import Console

from arenite.cli.console.results import Results
from arenite.cli.render.facts import (
    facts,
    held_as_json,
    held_row,
    listing,
    name,
    subrange_rows,
    subranges_as_json,
    tuned_as_json,
    tuned_rows,
)
from arenite.pipeline.base import both, dimensions_as_json, grouped, plural, printable
from arenite.pipeline.making import ProgramFile, TurnsByRows
from arenite.runtime import Session, SessionMemory, SessionPort, Tuned
from arenite.strategies import Held

_NAMED = 5
"""Tensors that are named where most bytes are live."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Facts of a program from a session on this machine.

    Attributes:
        backends: Steps by who runs them.
        held: Bytes that it holds.
        tuned: The processor it was tuned on, if it was.
    """

    backends: Counter[str]
    held: SessionMemory
    tuned: Tuned | None
    ports: Mapping[str, Sequence[SessionPort]]

    @classmethod
    def of(cls, session: Session) -> Self:
        ports = {"inputs": session.inputs, "outputs": session.outputs}
        return cls(Counter(session.backends()), session.memory(), session.tuned, ports)

    def rows(self) -> list[tuple[str, str]]:
        """Return rows of facts."""
        kernels = ", ".join(f"{count} {backend}" for backend, count in self.backends.most_common())
        ports = [
            (port.name, f"{port.dtype} {'x'.join(map(str, port.shape)) or 'scalar'}")
            for each in self.ports.values()
            for port in each
        ]
        return [("kernels", kernels), *tuned_rows(self.tuned), held_row(self.held), *ports]

    def as_json(self) -> dict[str, Any]:
        ports = {
            kind: {port.name: {"dtype": str(port.dtype), "shape": port.shape} for port in each}
            for kind, each in self.ports.items()
        }
        return {
            "backends": dict(sorted(self.backends.items())),
            "tuned": tuned_as_json(self.tuned),
            "held": held_as_json(self.held),
            **ports,
        }


def show_program(path: Path, *, as_json: bool) -> None:
    """Show the steps of a program file, their kernels, and the step that sets the height.

    Raises:
        ProgramError: The core refuses it.
        InvalidPlanError: Its turns do not find the rows that they read.
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """
    with Session(path) as session:
        program, loaded = ProgramFile.of(session), Loaded.of(session)
    program.check()
    regions, binding = program.regions(), program.binding()

    def text(console: Console) -> None:
        console.print(name(path.name, "bold"), soft_wrap=True)
        console.print(facts([*_facts(program, path), *loaded.rows()]))
        if regions:
            console.print()
            rows = [
                (
                    name(f"{each.first} to {each.last}"), grouped(each.num_steps),
                    _rows(each), grouped(each.stop - each.start),
                )
                for each in regions
            ]  # fmt: skip
            console.print(listing(("in bands", "steps>", "rows>", "turns>"), rows))
        if binding is not None:
            console.print()
            console.print(printable(_binds(program, binding)), soft_wrap=True)

    live = {} if binding is None else program.live_at(binding)
    Results(as_json=as_json).show(
        {
            "program": str(path),
            "name": program.root["name"],
            "digest": program.digest,
            "producer": program.root["producer"],
            "file_bytes": path.stat().st_size,
            "weights_bytes": program.root["weights_size"],
            "height": sum(program.heights.values()),
            "memories": dict(program.heights),
            "dimensions": dimensions_as_json(program.dimensions),
            "subranges": subranges_as_json(program.parts),
            "num_steps": program.num_steps,
            "operators": dict(_operators(program)),
            "num_turns": len(program.run.turns),
            "num_records": len(program.rectangles),
            "regions": [_region_as_json(each) for each in regions],
            "binding": None if binding is None else _binding_as_json(program, binding, live),
            **loaded.as_json(),
        },
        text,
    )


def _facts(program: ProgramFile, path: Path) -> list[tuple[str, str]]:
    root = program.root
    kinds = ", ".join(f"{count} {kind}" for kind, count in _operators(program))
    steps = plural(program.num_steps, "step")
    turns = len(program.run.turns)
    ran = f"{grouped(turns)} of {steps}" if turns != program.num_steps else f"{steps}, each whole"
    return [
        ("made by", root["producer"]),
        ("digest", program.digest),
        ("steps", f"{program.num_steps}: {kinds}"),
        *((memory, both(size)) for memory, size in program.heights.items()),
        *((("sizes", ", ".join(map(str, program.dimensions))),) if program.dimensions else ()),
        *subrange_rows(program.parts),
        ("records", grouped(len(program.rectangles))),
        ("turns", ran),
        ("weights", both(root["weights_size"])),
        ("file", both(path.stat().st_size)),
    ]


def _operators(program: ProgramFile) -> list[tuple[str, int]]:
    counts = Counter(step["kernel_type"] for step in program.root["steps"])
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _rows(region: TurnsByRows) -> str:
    if region.rows == region.most_rows:
        return grouped(region.rows)
    return f"{grouped(region.rows)}, at most {grouped(region.most_rows)}"


def _binds(program: ProgramFile, turn: int) -> str:
    live = program.live_at(turn)
    largest = [Held(tensor, size) for tensor, size in list(live.items())[:_NAMED]]
    held = ", ".join(f"{each.called} {both(each.size)}" for each in largest)
    more = f"{grouped(len(live) - _NAMED)} more" if len(live) > _NAMED else ""
    return (
        f"Binds at turn {grouped(turn)}, {_turn(program, turn)}: "
        f"{both(sum(live.values()))} are live: {held}{', and ' + more if more else ''}."
    )


def _turn(program: ProgramFile, turn: int) -> str:
    found = program.run.turns[turn]
    if not found.rows:
        return repr(found.step)
    rows = f"row {found.first}"
    if found.rows > 1:
        rows = f"rows {found.first} to {found.first + found.rows - 1}"
    return f"{rows} of {found.step!r}"


def _region_as_json(region: TurnsByRows) -> dict[str, Any]:
    return {
        "first": region.first,
        "last": region.last,
        "num_steps": region.num_steps,
        "rows": region.rows,
        "most_rows": region.most_rows,
        "start": region.start,
        "end": region.stop,
    }


def _binding_as_json(program: ProgramFile, turn: int, live: Mapping[str, int]) -> dict[str, Any]:
    found = program.run.turns[turn]
    return {
        "turn": turn,
        "step": found.step,
        "first": found.first,
        "rows": found.rows,
        "load": sum(live.values()),
        "live": dict(live),
    }
