"""`arenite run --steps`: a training step, run after run, and its states in a file."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from numpy.typing import NDArray
from rich.console import Console

from arenite.cli.commands.run.feeds import Feed, arrays_of
from arenite.cli.console.interrupt import stop_on_interrupt
from arenite.cli.console.results import Results
from arenite.cli.console.streams import progress
from arenite.cli.render.numbers import both
from arenite.cli.render.tables import facts
from arenite.cli.render.text import name as styled_name
from arenite.planner.errors import MissingDependencyError, about_file

if TYPE_CHECKING:
    from arenite.training.runner import StepRunner

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

    Ctrl-C ends it after the run at work, and the states so far are written.

    Args:
        model: The step.
        feeds: Its inputs; batches are taken one after another.
        state: File of the states, read if it is there and written at the end; None to forget
            them.
        steps: How many times the step runs.
        threads: Number of threads.
        as_json: Whether standard output gets JSON instead of text.

    Raises:
        ModelFormatError: The model is no training step.
        StateFileError: The file does not fit the step.
        StepInputError: The inputs do not.
        UsageError: An input is given twice or without its name.
    """
    results = Results(as_json=as_json)
    results.reserve(state, sources=(model, *(feed.path for feed in feeds)))
    try:
        from arenite.training.runner import Batches, StepRunner
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise MissingDependencyError("onnx", "onnx", "running a training step") from error
    runner = StepRunner(model, threads=threads)
    if state is not None and state.exists():
        with about_file(state):
            runner.restore(arrays_of(Feed(state)))
    batches = Batches(_arrays(feeds, runner), runner.inputs)
    console, losses, told, interrupted = progress(), list[float](), 0.0, False
    with stop_on_interrupt() as request:
        for number in range(steps):
            losses.append(_loss(runner.run(batches[number])))
            last = number + 1 == steps or request.asked
            if not as_json and (last or time.monotonic() - told > _SECONDS_APART):
                told = time.monotonic()
                console.print(f"step {number + 1} of {steps}: loss {losses[-1]:.6g}")
            if request.asked:
                interrupted = True
                break
    results.write(state, lambda: _as_npz(runner.states))
    size = sum(array.nbytes for array in runner.states.values())

    def text(output: Console) -> None:
        output.print(styled_name(model.name, "bold"), soft_wrap=True)
        rows = [
            ("steps", f"{len(losses)} of {steps}" + (", interrupted" if interrupted else "")),
            ("loss", f"{losses[0]:.6g} at first, {losses[-1]:.6g} at last"),
            ("states", both(size)),
            *(("written", styled_name(str(path))) for path in results.written),
        ]
        output.print(facts(rows))

    results.show(
        {
            "model": str(model),
            "engine": "onnxruntime",
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


def _arrays(feeds: Sequence[Feed], runner: "StepRunner") -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    for feed in feeds:
        arrays = arrays_of(feed)
        if not feed.holds_all:
            if feed.name is None and len(runner.inputs) != 1:
                raise click.UsageError(
                    f"--input {feed.path}: name the input, as in NAME=FILE, or give an .npz"
                )
            name = feed.name or next(iter(runner.inputs))
            arrays = {name: arrays.get(name, next(iter(arrays.values())))}
        for name, array in arrays.items():
            if name in found:
                raise click.UsageError(f"--input {feed.path}: input {name!r} is given twice")
            found[name] = array
    return found


def _as_npz(states: Mapping[str, NDArray[Any]]) -> bytes:
    from arenite.cli.commands.run.arrays import as_npz

    return as_npz(states)
