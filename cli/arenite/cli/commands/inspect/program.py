"""`arenite inspect` of a program file: what it holds, and which kernels run it here."""

from collections import Counter
from pathlib import Path

from rich.console import Console

from arenite.cli.console.results import Results
from arenite.cli.render.held import held_as_json, held_row
from arenite.cli.render.numbers import both
from arenite.cli.render.tables import facts
from arenite.cli.render.text import name, printable
from arenite.cli.render.tuned import tuned_as_json, tuned_rows
from arenite.runtime.session import Session


def inspect_program(path: Path, *, as_json: bool) -> None:
    """Load a program file and show what it holds.

    Raises:
        ProgramError: It cannot be read, or is not to be trusted.
        MissingDependencyError: A step needs ONNX Runtime, which is absent.
    """
    with Session(path) as session:
        ran = Counter(session.backends())
        held, tuned = session.memory(), session.tuned
        arena_bytes, memories = session.arena_bytes, session.memories
        ports = {
            "inputs": {port.name: (str(port.dtype), port.shape) for port in session.inputs},
            "outputs": {port.name: (str(port.dtype), port.shape) for port in session.outputs},
        }

    def text(console: Console) -> None:
        console.print(name(path.name, "bold"), soft_wrap=True)
        backends = ", ".join(f"{count} {backend}" for backend, count in ran.most_common())
        rows = [("steps", f"{ran.total()}: {backends}"), ("arena", both(arena_bytes))]
        if len(memories) > 1:
            rows += [(printable(each.name), both(each.size)) for each in memories]
        rows += tuned_rows(tuned)
        rows.append(held_row(held))
        for by_name in ports.values():
            for key, (dtype, shape) in by_name.items():
                rows.append((printable(key), f"{dtype} {'x'.join(map(str, shape)) or 'scalar'}"))
        console.print(facts(rows))

    Results(as_json=as_json).show(
        {
            "model": str(path),
            "num_steps": ran.total(),
            "backends": dict(sorted(ran.items())),
            "arena_bytes": arena_bytes,
            "memories": [
                {"name": each.name, "size": each.size, "spilled": each.spilled}
                for each in memories
            ],
            "tuned": tuned_as_json(tuned),
            "held": held_as_json(held),
            **{
                kind: {key: {"dtype": dtype, "shape": shape} for key, (dtype, shape) in by.items()}
                for kind, by in ports.items()
            },
        },
        text,
    )
