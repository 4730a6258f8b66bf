"""`arenite bench`: latency and memory beside other engines."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.text import Text

from arenite.cli.console.observer import TERMINAL
from arenite.cli.console.results import Results
from arenite.cli.console.streams import progress
from arenite.cli.options.common import json_option, threads_option
from arenite.cli.options.model import activations_option, cache_option, size_option, sizes_options
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.types import SECONDS, number_type
from arenite.cli.render.facts import listing, name
from arenite.pipeline.base import (
    Reading,
    along,
    both,
    completed,
    dimensions_as_json,
    plural,
    sizes_text,
)
from arenite.pipeline.contest import (
    ENGINES,
    OURS,
    Contest,
    Measured,
    check_installed,
    measure,
    ours,
    outputs_of,
    whole_inputs,
)
from arenite.pipeline.making import SUFFIX, build_program, random_inputs, with_fixed
from arenite.planner import model_format
from arenite.planner.errors import MissingDependencyError
from arenite.planner.sizes import Sizes
from arenite.runtime.rewrites import Activations, Caches

_DEFAULTS = {"onnx": ("onnxruntime",), "tflite": ("litert-xnnpack",)}


@click.command(
    cls=SectionedCommand,
    sections={"Reading the model": ("dims", "shapes", "points", "values", "activations", "cache")},
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--against",
    metavar="ENGINE,...",
    help="Engines to compare with: names, 'all' (every installed one) or 'none'.  [default: "
    "onnxruntime for ONNX, litert-xnnpack for TFLite]",
)
@threads_option("Threads per engine.")
@click.option(
    "--rounds", type=number_type(1, 1000), default=5, show_default=True, metavar="N",
    help="Number of rounds; each starts every engine in a fresh process.",
)  # fmt: skip
@click.option(
    "--seconds", type=SECONDS, default=1.0, show_default=True, metavar="S",
    help="Seconds to measure in each process.",
)  # fmt: skip
@click.option(
    "--seed",
    type=number_type(),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random inputs.",
)
@sizes_options
@size_option("Sizes to measure at, of a range.  [default: the lowest, the middle and the highest]")
@activations_option
@cache_option
@json_option
def bench(
    reading: Reading,
    model: Path,
    against: str | None,
    threads: int,
    rounds: int,
    seconds: float,
    seed: int,
    points: tuple[Sizes, ...],
    activations: Activations | None,
    cache: Caches | None,
    as_json: bool,
) -> None:
    """Measure the latency and memory of MODEL on our runtime and on others.

    Each round runs the engines one after another, each in a fresh process, so that noise on
    the machine hits all of them alike. The ratio is the median over all rounds of an engine's
    latency divided by ours: above 1, ours is faster. Ctrl-C keeps the rounds that are
    complete.

    For a range of sizes, such as --dim seq=1..512, one program is measured at several sizes.
    """
    if model.suffix == SUFFIX:
        raise click.UsageError(f"only our runtime runs {SUFFIX} files; give the model instead")
    kind = model_format(model)
    engines = (OURS, *_opponents(kind, against))
    with tempfile.TemporaryDirectory(prefix="arenite-bench-") as folder:
        program = Path(folder) / "model.arena"
        compiled = build_program(
            model, program, reading=replace(reading, activations=activations, cache=cache)
        )
        # What a run counts, no input can set.
        dimensions = tuple(each for each in compiled.program.dimensions if not each.counted_by)
        given = [completed(each, dimensions) for each in points]
        files = {engine: program if engine == OURS else model for engine in engines}
        found: list[_AtSizes] = []
        for number, sizes in enumerate(given or along(dimensions, 3)):
            inputs = Path(folder) / str(number) / "inputs.npz"
            inputs.parent.mkdir()
            arrays = random_inputs(compiled.program, seed, sizes)
            np.savez(inputs, *arrays.values())
            if reading.values:
                np.savez(whole_inputs(inputs), *with_fixed(model, reading, arrays).values())
            contest = Contest(kind, files, inputs, threads, seconds, may_drop=against == "all")
            found.append(_measured(contest, rounds, sizes))
            if found[-1].num_rounds < rounds:
                break
    Results(as_json=as_json).show(
        {
            "model": str(model),
            "threads": threads,
            "rounds": found[-1].num_rounds,
            "interrupted": found[-1].num_rounds < rounds,
            "engines": found[-1].engines_as_json(),
            "dimensions": dimensions_as_json(dimensions),
            "sizes": [
                {"sizes": dict(each.sizes), "engines": each.engines_as_json()}
                for each in (found if dimensions else ())
            ],
        },
        lambda console: _print(console, model, threads, rounds, found),
    )


@dataclass(frozen=True, slots=True)
class _AtSizes:
    """The measurements at one size.

    Attributes:
        sizes: Values of the dimensions; empty without a range.
        errors: Largest difference of the outputs of each engine from ours.
    """

    sizes: Sizes
    measured: list[Measured]
    errors: Mapping[str, float | None]

    @property
    def num_rounds(self) -> int:
        return len(self.measured[0].samples)

    def engines_as_json(self) -> list[dict[str, object]]:
        own = ours(self.measured)
        return [
            each.as_json(own) | {"max_difference": self.errors[each.engine]}
            for each in self.measured
        ]


def _measured(contest: Contest, rounds: int, sizes: Sizes) -> _AtSizes:
    where = f" at {sizes_text(sizes)}" if sizes else ""
    with progress().status("") as status:
        measured = measure(
            contest,
            rounds,
            lambda number, engine: status.update(
                Text(f"round {number + 1} of {rounds}{where}: {engine}")
            ),
            TERMINAL,
        )
    return _AtSizes(
        sizes, measured, {each.engine: _distance(contest, each.engine) for each in measured}
    )


def _opponents(kind: str, against: str | None) -> tuple[str, ...]:
    known = ENGINES.get(kind)
    if known is None:
        raise click.UsageError("a CSV cannot be run; give an .onnx or .tflite model")
    if against is None:
        names: tuple[str, ...] = _DEFAULTS[kind]
    elif against == "all":
        return tuple(engine for engine in known if engine != OURS and _is_installed(engine))
    else:
        words = () if against == "none" else against.split(",")
        names = tuple(dict.fromkeys(word for word in words if word != OURS))
    for engine in names:
        if engine not in known:
            others = ", ".join(each for each in known if each != OURS)
            raise click.BadParameter(
                f"{engine!r} does not run {kind.upper()} models; choose from {others}",
                param_hint="--against",
            )
        check_installed(engine)
    return names


def _is_installed(engine: str) -> bool:
    try:
        check_installed(engine)
    except MissingDependencyError:
        return False
    return True


def _distance(contest: Contest, engine: str) -> float | None:
    """Return the largest difference of an engine's outputs from ours; None if not comparable."""
    with np.load(outputs_of(contest, OURS)) as own, np.load(outputs_of(contest, engine)) as others:
        if len(own.files) != len(others.files):
            return None
        pairs = [(own[a], others[b]) for a, b in zip(own.files, others.files, strict=True)]
    if any(a.shape != b.shape for a, b in pairs):
        return None
    largest = 0.0
    for a, b in pairs:
        differ = ~((a == b) | ((a != a) & (b != b)))  # NaN is like NaN
        apart = np.abs(a[differ].astype(np.float64) - b[differ])
        largest = max(largest, float(np.max(apart, initial=0.0)))
        if not np.all(np.isfinite(apart)):
            return None
    return largest


def _print(
    console: Console, model: Path, threads: int, num_wanted: int, found: Sequence[_AtSizes]
) -> None:
    rows = []
    for at in found:
        for each, facts in zip(at.measured, at.engines_as_json(), strict=True):
            latency = facts["latency_ms"]
            assert isinstance(latency, dict)
            ratio, arena = facts["ratio"], facts["arena_bytes"]
            rows.append(
                (
                    *((sizes_text(at.sizes),) if at.sizes else ()),
                    Text(each.engine, "bold"),
                    f"{latency['median']:.3f}",
                    f"{latency['min']:.3f}",
                    "" if ratio is None else f"{ratio:.2f}",
                    f"{facts['load_ms']:.0f}",
                    both(int(str(facts["peak_rss_bytes"]))),
                    "" if arena is None else both(int(str(arena))),
                    _difference(each.engine, at.errors[each.engine]),
                )
            )
    num_rounds = found[-1].num_rounds
    console.print(
        name(
            f"{model.name}: {plural(num_rounds, 'round')}"
            f"{f' of {num_wanted}' if num_rounds < num_wanted else ''}, "
            f"{plural(threads, 'thread')}"
        )
    )
    console.print(
        listing(
            (*(("sizes",) if found[-1].sizes else ()), "engine", "median ms>", "best ms>",
             "ratio>", "load ms>", "peak memory>", "arena>", "difference>"),
            rows,
        )
    )  # fmt: skip


def _difference(engine: str, error: float | None) -> str:
    if engine == OURS:
        return ""
    return "not comparable" if error is None else "none" if not error else f"{error:.1e}"
