"""`arenite run`: one inference, on files, or a training step."""

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray
from rich.console import Console, RenderableType

from arenite.cli.commands.run.classes import Likely, check_labels, likeliest, read_labels
from arenite.cli.commands.run.feeds import FEED, Feed, as_npz, random_feeds, read_feeds
from arenite.cli.commands.run.images import Normalisation
from arenite.cli.commands.run.training import run_steps
from arenite.cli.console.results import Results
from arenite.cli.console.streams import note
from arenite.cli.options.common import json_option, refuse_beside, strategy_option, threads_option
from arenite.cli.options.model import activations_option, cache_option, size_option, sizes_options
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.types import Parsed, number_type
from arenite.cli.render.facts import facts, listing, tuned_as_json, tuned_rows
from arenite.cli.render.facts import name as styled_name
from arenite.pipeline.base import Reading, both, duration, printable, sizes_text
from arenite.pipeline.making import SUFFIX, build_program, compile_by_plan, write_program
from arenite.planner import Array
from arenite.planner.errors import named_instead
from arenite.planner.sizes import Sizes
from arenite.runtime import DeadMemoryError, Session, StepProfile, Tuned, chrome_trace
from arenite.runtime.rewrites import Activations, Caches
from arenite.strategies import find

_NAN, _LARGE = 0xFF, 0x4B
"""Bytes of NaN, and of a large number: a kernel that clamps turns NaN into plausible values."""
_NUM_SLOWEST = 20
_SEED = 0
"""Of the inputs where the user gives none."""
_NOT_FOR_STEPS = (
    "output", "plan_path", "labels_path", "top", "mean", "std", "profile", "trace", "poison",
    "requested", "dims", "shapes", "values", "points",
)  # fmt: skip
"""Options of a single run of a model, which a training step does not take."""


def _numbers(text: str) -> tuple[float, ...]:
    """Return a number for all channels, or one for each of three."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{text!r} is not one number, or three separated by commas")
    return numbers


def _positive_numbers(text: str) -> tuple[float, ...]:
    numbers = _numbers(text)
    if min(numbers) <= 0:
        raise ValueError(f"{text!r} is not above 0")
    return numbers


def _together(points: Sequence[Sizes]) -> dict[str, int]:
    """Return the sizes that several options give, each of one dimension at most once."""
    found: dict[str, int] = {}
    for size_name, value in (item for each in points for item in each.items()):
        if found.setdefault(size_name, value) != value:
            raise click.BadParameter(
                f"{size_name} is {found[size_name]} and {value}; a run has one size",
                param_hint="'--size'",
            )
    return found


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a run.

    Attributes:
        backends: Whose kernel ran each step.
        tuned: The processor that the program was tuned on, if it was.
        steps: The time each took, if that was asked for.
        likeliest: The classes with the highest scores.
        sizes: Values of the dimensions of a program for a range.
    """

    outputs: Mapping[str, NDArray[Any]]
    arena_bytes: int
    backends: tuple[str, ...]
    tuned: Tuned | None
    steps: tuple[StepProfile, ...]
    likeliest: tuple[Likely, ...]
    sizes: Sizes


@click.command(
    cls=SectionedCommand,
    sections={
        "Pictures and classes": ("mean", "std", "labels_path", "top"),
        "Planning": (
            "plan_path",
            "requested",
            "dims",
            "shapes",
            "points",
            "values",
            "activations",
            "cache",
        ),
        "Training": ("num_steps", "state_path"),
        "Diagnosis": ("profile", "trace", "poison"),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--input", "feeds", type=FEED, multiple=True, metavar="[NAME=]FILE",
    help="Input: a .npy, a .npz with all inputs, or a picture. Repeatable.  [default: random "
    "numbers for all inputs]",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="OUT.npz",
    help="Write the outputs to a file.",
)  # fmt: skip
@click.option(
    "--plan", "plan_path", type=click.Path(path_type=Path), metavar="PLAN.json",
    help="Use this plan instead of making one.",
)  # fmt: skip
@threads_option("Number of threads.")
@click.option(
    "--labels", "labels_path", type=click.Path(path_type=Path), metavar="FILE",
    help="Text file with one class name per line.",
)  # fmt: skip
@click.option(
    "--top", type=number_type(1), default=5, show_default=True, metavar="N",
    help="Number of classes to print.",
)  # fmt: skip
@click.option(
    "--mean", type=Parsed("numbers", _numbers), default="127.5", show_default=True,
    metavar="X[,Y,Z]", help="Mean to subtract from the pixels of a picture.",
)  # fmt: skip
@click.option(
    "--std", type=Parsed("numbers", _positive_numbers), default="127.5", show_default=True,
    metavar="X[,Y,Z]", help="Standard deviation to divide the pixels by.",
)  # fmt: skip
@click.option(
    "--steps", "num_steps", type=number_type(1), metavar="N",
    help="Run a training step N times, batch after batch.",
)  # fmt: skip
@click.option(
    "--state", "state_path", type=click.Path(path_type=Path), metavar="STATE.npz",
    help="States of a training step: read if the file is there, and written at the end.",
)  # fmt: skip
@click.option("--profile", is_flag=True, help="Print the slowest steps.")
@click.option(
    "--trace", type=click.Path(path_type=Path), metavar="TRACE.json",
    help="Write the time of each step, for Perfetto or chrome://tracing.",
)  # fmt: skip
@click.option(
    "--poison", is_flag=True,
    help="Fill unused memory with NaN, then with large numbers, and fail if the outputs differ or "
    "an index is outside its axis.",
)  # fmt: skip
@strategy_option
@sizes_options
@size_option("Sizes of a model for a range, unless arrays of --input have others.")
@activations_option
@cache_option
@json_option
def run(
    reading: Reading,
    model: Path,
    feeds: Sequence[Feed],
    output: Path | None,
    plan_path: Path | None,
    threads: int,
    labels_path: Path | None,
    top: int,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    num_steps: int | None,
    state_path: Path | None,
    profile: bool,
    trace: Path | None,
    poison: bool,
    requested: str,
    points: tuple[Sizes, ...],
    activations: Activations | None,
    cache: Caches | None,
    as_json: bool,
) -> None:
    """Run MODEL once: an .onnx or .tflite file, or an .arena file from 'arenite build'.

    Prints the likeliest classes if --labels is given or the output looks like class scores.
    8-bit inputs take the pixels of a picture as they are; for float inputs they are
    normalised with --mean and --std.

    A model for a range of sizes, with --dim seq=1..512 or from 'arenite build', runs at the sizes
    of the arrays that it is given, else at --size, else at the highest.

    With --steps, MODEL is a training step from 'arenite train', and its inputs hold the samples
    of one batch or of several.
    """
    if num_steps is not None or state_path is not None:
        refuse_beside("a training step", *_NOT_FOR_STEPS)
        run_steps(model, feeds, state_path, num_steps or 1, threads, as_json=as_json)
        return
    results = Results(as_json=as_json)
    results.reserve(
        output, trace, sources=(model, plan_path, labels_path, *(feed.path for feed in feeds))
    )
    labels = None if labels_path is None else read_labels(labels_path)
    with (
        _program(
            model, plan_path, requested, replace(reading, activations=activations, cache=cache)
        ) as program,
        Session(
            program, threads=threads, poison=_NAN if poison else None, guard=poison
        ) as session,
    ):
        if labels is not None:
            check_labels(labels, session.outputs)
        if points:
            session.resize(_together(points))
        is_random = not feeds and len(session.inputs) > 0
        if is_random:
            inputs = random_feeds(session.inputs, _SEED)
            note(f"no --input: the model runs on random numbers, seed {_SEED}")
        else:
            inputs = read_feeds(feeds, session.inputs, Normalisation(mean, std))
        outputs = session.run(inputs)
        if poison:
            _check_again(program, threads, inputs, outputs)
        steps: tuple[StepProfile, ...] = ()
        if profile or trace is not None:
            for port in session.inputs:  # the run may have overwritten them
                port.view[...] = inputs[port.name]
            steps = session.profile()
        best = likeliest(outputs, labels, top)
        result = _Result(
            outputs,
            session.arena_bytes,
            session.backends(),
            session.tuned,
            steps,
            best,
            session.sizes,
        )
    results.write(output, lambda: as_npz(outputs))
    results.write(trace, lambda: chrome_trace(printable(model.name), steps))

    def text(console: Console) -> None:
        console.print(styled_name(model.name, "bold"), soft_wrap=True)
        console.print(_summary(result, results.written))
        if result.likeliest:
            console.print()
            console.print(_classes(result.likeliest))
        if profile:
            console.print()
            console.print(_slowest(steps))

    document = _as_json(model, result, output, trace, with_steps=profile)
    results.show(document | {"input_seed": _SEED if is_random else None}, text)


@contextmanager
def _program(
    model: Path, plan_path: Path | None, requested: str, reading: Reading
) -> Iterator[Path]:
    """Give the program file of a model while the block runs."""
    if model.suffix == SUFFIX:
        refuse_beside(
            f"the {SUFFIX} file", "plan_path", "requested", "dims", "shapes", "values",
            "activations", "cache",
        )  # fmt: skip
        yield model
        return
    strategy = find(requested)
    with tempfile.TemporaryDirectory(prefix="arenite-run-") as folder:
        program = Path(folder) / f"model{SUFFIX}"
        if plan_path is None:
            build_program(model, program, reading=reading, strategy=strategy)
        else:
            refuse_beside("--plan", "requested", "activations", "cache")
            write_program(program, *compile_by_plan(model, plan_path, reading))
        with named_instead(program, model):
            yield program


def _as_json(
    model: Path, result: _Result, output: Path | None, trace: Path | None, *, with_steps: bool
) -> dict[str, object]:
    return {
        "model": str(model),
        "arena_bytes": result.arena_bytes,
        "sizes": dict(result.sizes),
        "backends": {name: result.backends.count(name) for name in sorted({*result.backends})},
        "tuned": tuned_as_json(result.tuned),
        "outputs": {
            key: {"shape": list(value.shape), "dtype": str(value.dtype)}
            for key, value in result.outputs.items()
        },
        "top": [
            {
                "class": each.index,
                "label": each.label,
                "score": each.score if math.isfinite(each.score) else None,
            }
            for each in result.likeliest
        ],
        "steps": [
            {
                "step": step.name,
                "operator": step.operator,
                "backend": step.backend,
                "nanoseconds": step.nanoseconds,
                "bytes": step.bytes,
            }
            for step in (result.steps if with_steps else ())
        ],
        "output": output and str(output),
        "trace": trace and str(trace),
    }


def _summary(result: _Result, written: Sequence[Path]) -> RenderableType:
    kinds = sorted({*result.backends}, key=lambda kind: (-result.backends.count(kind), kind))
    ran = ", ".join(f"{result.backends.count(kind)} {kind}" for kind in kinds)
    rows: list[tuple[str, RenderableType]] = [
        ("arena", both(result.arena_bytes)),
        *((("sizes", sizes_text(result.sizes)),) if result.sizes else ()),
        ("steps", f"{len(result.backends)}: {ran}"),
        *tuned_rows(result.tuned),
    ]
    for key, value in result.outputs.items():
        shape = "x".join(map(str, value.shape)) or "scalar"
        rows.append((key, f"{value.dtype} {shape}, {_range(value)}"))
    rows += (("written", styled_name(str(path))) for path in written)
    return facts(rows)


def _classes(best: Sequence[Likely]) -> RenderableType:
    return listing(
        ("class>", "score>", "label"),
        ((str(each.index), f"{each.score:.6g}", styled_name(each.label)) for each in best),
    )


def _slowest(steps: Sequence[StepProfile]) -> RenderableType:
    total = sum(step.nanoseconds for step in steps) or 1
    slowest = sorted(steps, key=lambda step: -step.nanoseconds)[:_NUM_SLOWEST]
    return listing(
        ("step", "operator", "backend", "time>", "share>", "bytes>"),
        (
            (
                styled_name(step.name), step.operator, step.backend,
                duration(step.nanoseconds / 1e9), f"{100 * step.nanoseconds / total:.1f} %",
                f"{step.bytes:,}",
            )
            for step in slowest
        ),
    )  # fmt: skip


def _range(value: NDArray[Any]) -> str:
    if value.size == 0 or value.dtype.kind not in "fiu":
        return f"{value.size} elements"
    return f"{value.min():.6g} to {value.max():.6g}"


def _check_again(
    program: Path, threads: int, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> None:
    """Run once more on dead memory of large numbers, and compare with a run on NaN."""
    with Session(program, threads=threads, poison=_LARGE) as session:
        again = session.run(inputs)
    for name, array in outputs.items():
        if array.tobytes() != again[name].tobytes():
            raise DeadMemoryError(name)
