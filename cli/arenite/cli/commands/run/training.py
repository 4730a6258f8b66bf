"""`arenite run --steps`: a training step, run after run, and its states in a file."""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray
from rich.console import Console, RenderableType

from arenite.cli.commands.run.feeds import Feed, arrays_of, as_npz
from arenite.cli.console.interrupt import stop_on_interrupt
from arenite.cli.console.results import Results
from arenite.cli.console.streams import progress
from arenite.cli.render.facts import facts
from arenite.cli.render.facts import name as styled_name
from arenite.pipeline.base import both
from arenite.planner.errors import about_file, needing

_SECONDS_APART = 0.5
"""How often the loss is told of while it runs."""


def run_steps(
    model: Path,
    feeds: Sequence[Feed],
    state: Path | None,
    steps: int,
    threads: int,
    *,
    as_json: bool,
) -> None:
    """Run a training step several times and write its states.

    It runs in our runtime, in the arena of its plan, or in ONNX Runtime where ours does not take
    it. Ctrl-C ends it after the run at work, and the states so far are written.

    Args:
        feeds: Its inputs; batches are taken one after another.
        state: File of the states, read if it is there and written at the end; None to forget
            them.

    Raises:
        ModelFormatError: The model is no training step.
        StateFileError: The file does not fit the step.
        StepInputError: The inputs do not.
        UsageError: An input is given twice or without its name.
    """
    results = Results(as_json=as_json)
    results.reserve(state, sources=(model, *(feed.path for feed in feeds)))
    with needing("onnx", "onnx", "running a training step"):
        from arenite.pipeline import open_step
        from arenite.training import Batches, restore
    losses, interrupted = list[float](), False
    with open_step(model, threads) as engine:
        if state is not None and state.exists():
            with about_file(state):
                restore(engine.states, arrays_of(Feed(state)))
        batches = Batches(_arrays(feeds, engine.inputs), engine.inputs)
        tell = _Progress(steps, quiet=as_json)
        with stop_on_interrupt() as request:
            for number in range(steps):
                losses.append(_loss(engine.run(batches[number])))
                tell(number + 1, losses[-1], at_once=request.asked)
                if request.asked:
                    interrupted = True
                    break
        size = sum(array.nbytes for array in engine.states.values())
        results.write(state, lambda: as_npz(engine.states))

    def text(output: Console) -> None:
        output.print(styled_name(model.name, "bold"), soft_wrap=True)
        rows: list[tuple[str, RenderableType]] = [
            ("steps", f"{len(losses)} of {steps}" + (", interrupted" if interrupted else "")),
            ("loss", f"{losses[0]:.6g} at first, {losses[-1]:.6g} at last"),
            ("states", both(size)),
        ]
        if engine.arena_bytes is not None:
            rows.append(("arena", f"{both(engine.arena_bytes)}, the states in it"))
        if engine.note:
            rows.append(("note", engine.note))
        rows += (("written", styled_name(str(path))) for path in results.written)
        output.print(facts(rows))

    results.show(
        {
            "model": str(model),
            "engine": engine.name,
            "arena_bytes": engine.arena_bytes,
            "note": engine.note,
            "steps": len(losses),
            "interrupted": interrupted,
            "losses": [loss if math.isfinite(loss) else None for loss in losses],
            "state": state and str(state),
            "state_bytes": size,
        },
        text,
    )


def _loss(outputs: Mapping[str, NDArray[Any]]) -> float:
    """Return the first output that is one number."""
    numbers = (float(array.item()) for array in outputs.values() if array.size == 1)
    return next(numbers, math.nan)


class _Progress:
    """Tells of the loss now and then."""

    def __init__(self, steps: int, *, quiet: bool) -> None:
        self._steps = steps
        self._console = None if quiet else progress()
        self._told = -math.inf

    def __call__(self, number: int, loss: float, *, at_once: bool) -> None:
        """Tell of a step, if it is the last or it is time."""
        now = time.monotonic()
        if self._console is not None and (
            at_once or number == self._steps or now - self._told > _SECONDS_APART
        ):
            self._told = now
            self._console.print(f"step {number} of {self._steps}: loss {loss:.6g}")


def _arrays(feeds: Sequence[Feed], inputs: Collection[str]) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    for feed in feeds:
        arrays = arrays_of(feed)
        if not feed.holds_all:
            if feed.name is None and len(inputs) != 1:
                raise click.UsageError(
                    f"--input {feed.path}: name the input, as in NAME=FILE, or give an .npz"
                )
            name = feed.name or next(iter(inputs))
            arrays = {name: arrays.get(name, next(iter(arrays.values())))}
        for name, array in arrays.items():
            if name in found:
                raise click.UsageError(f"--input {feed.path}: input {name!r} is given twice")
            found[name] = array
    return found
