"""`arenite bench`: latency and memory beside other engines."""

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
from rich.text import Text

from arenite.cli.bench.engines import ENGINES, OURS
from arenite.cli.bench.rounds import Contest, Measured, measure, ours, outputs_of
from arenite.cli.options import dim_option, json_option, shape_option
from arenite.cli.output import emit_json, progress, results
from arenite.cli.programs import build_program, random_inputs
from arenite.cli.render.numbers import both
from arenite.cli.render.tables import listing
from arenite.planner.importers import Shapes, model_format

_PACKAGES = {
    "onnxruntime": "onnxruntime",
    "onnxruntime-planned": "onnxruntime",
    "litert": "ai_edge_litert",
    "litert-xnnpack": "ai_edge_litert",
    "litert-planned": "ai_edge_litert",
}
_DEFAULTS = {"onnx": ("onnxruntime",), "tflite": ("litert-xnnpack",)}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--against",
    metavar="ENGINE,...",
    help="Other engines; `all` for every one that is installed.  [default: onnxruntime for "
    "ONNX, litert-xnnpack for TFLite]",
)
@click.option(
    "--threads", type=click.IntRange(1, 256), default=1, show_default=True, help="Of each engine."
)
@click.option(
    "--rounds", type=click.IntRange(1, 1000), default=5, show_default=True,
    help="How often each engine gets a fresh process.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(0.01, 3600), default=1.0, show_default=True,
    help="That each process measures.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the inputs."
)
@dim_option
@shape_option
@json_option
def bench(
    model: Path,
    against: str | None,
    threads: int,
    rounds: int,
    seconds: float,
    seed: int,
    dims: Mapping[str, int],
    shapes: Shapes,
    as_json: bool,
) -> None:
    """Measure MODEL on our runtime and on others.

    Every round starts each engine in a process of its own, one after the other, so that
    whatever else the machine does meets all of them. A ratio is the median over the rounds
    of an engine's latency to ours: above 1, ours is faster. Ctrl-C keeps complete rounds.
    """
    kind = model_format(model)
    engines = (OURS, *_opponents(kind, against))
    with tempfile.TemporaryDirectory(prefix="arenite-bench-") as folder:
        program = Path(folder) / "model.arena"
        compiled = build_program(model, program, dims=dims, shapes=shapes)
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, *random_inputs(compiled.lowered, seed).values())
        files = {engine: program if engine == OURS else model for engine in engines}
        contest = Contest(kind, files, inputs, threads, seconds)
        console = progress()
        with console.status("") as status:
            measured = measure(
                contest,
                rounds,
                lambda number, engine: status.update(
                    Text(f"round {number + 1} of {rounds}: {engine}")
                ),
            )
        errors = {engine: _distance(contest, engine) for engine in engines}
    if as_json:
        emit_json(
            {
                "model": str(model),
                "threads": threads,
                "rounds": len(measured[0].samples),
                "engines": [
                    each.as_json(ours(measured)) | {"max_difference": errors[each.engine]}
                    for each in measured
                ],
            }
        )
        return
    _print(model, threads, measured, errors)


def _opponents(kind: str, against: str | None) -> tuple[str, ...]:
    known = ENGINES.get(kind)
    if known is None:
        raise click.UsageError("records cannot be run; give an .onnx or .tflite model")
    if against is None:
        names: tuple[str, ...] = _DEFAULTS[kind]
    elif against == "all":
        return tuple(n for n in known if n != OURS and find_spec(_PACKAGES[n]) is not None)
    else:
        names = tuple(name for name in against.split(",") if name != OURS)
    for name in names:
        if name not in known:
            others = ", ".join(each for each in known if each != OURS)
            raise click.BadParameter(
                f"{name!r} does not run {kind.upper()}; those that do: {others}",
                param_hint="--against",
            )
    return names


def _distance(contest: Contest, engine: str) -> float | None:
    """Return the largest difference of an engine's outputs from ours."""
    with np.load(outputs_of(contest, OURS)) as own, np.load(outputs_of(contest, engine)) as others:
        if len(own.files) != len(others.files):
            return None
        pairs = [(own[a], others[b]) for a, b in zip(own.files, others.files, strict=True)]
    if any(a.shape != b.shape for a, b in pairs):
        return None
    return max(
        (float(np.max(np.abs(a.astype(np.float64) - b), initial=0.0)) for a, b in pairs),
        default=0.0,
    )


def _print(
    model: Path, threads: int, measured: list[Measured], errors: Mapping[str, float | None]
) -> None:
    console = results()
    own = ours(measured)
    rows = []
    for each in measured:
        facts = each.as_json(own)
        latency = facts["latency_ms"]
        assert isinstance(latency, dict)
        ratio, arena, error = facts["ratio"], facts["arena_bytes"], errors[each.engine]
        rows.append(
            (
                Text(each.engine, "bold"),
                f"{latency['median']:.3f}",
                f"{latency['min']:.3f}",
                "" if ratio is None else f"{ratio:.2f}",
                f"{facts['load_ms']:.0f}",
                both(int(str(facts["peak_rss_bytes"]))),
                "" if arena is None else both(int(str(arena))),
                "" if error is None or each.engine == OURS else f"{error:.1e}",
            )
        )
    num_rounds = len(measured[0].samples)
    console.print(
        Text(f"{model.name}: {num_rounds} rounds, {threads} thread{'s' * (threads > 1)}")
    )
    console.print(
        listing(
            ("engine", "median ms>", "best ms>", "ratio>", "load ms>", "peak memory>", "arena>",
             "difference>"),
            rows,
        )
    )  # fmt: skip
