"""`arenite stream`: a model over time as a program that runs on the rows of a hop."""

from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import (
    capacity_option,
    json_option,
    seed_option,
    strategy_option,
    time_limit_option,
)
from arenite.cli.options.model import order_option, sizes_options
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.stream import stream_options
from arenite.cli.options.types import PROGRAM_FILE
from arenite.cli.render.facts import arena_row, facts, held_as_json, held_row, name, plan_as_json
from arenite.pipeline.base import Reading, both, configured, grouped, plural
from arenite.pipeline.making import StreamedModel, stream_model
from arenite.runtime.rewrites import Kernels
from arenite.strategies import find


@click.command(
    cls=SectionedCommand,
    sections={
        "The stream": ("stream_axis", "stream_hop", "stream_rate", "stream_padding"),
        "Reading the model": ("order_name", "dims", "shapes", "values"),
        "Search": ("requested", "capacity", "time_limit_s", "seed"),
        "Kernels": ("kernels",),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=PROGRAM_FILE, required=True, metavar="MODEL.arena",
    help="Program file to write.",
)  # fmt: skip
@sizes_options
@stream_options(required=True)
@strategy_option
@order_option
@capacity_option
@click.option(
    "--kernels", type=click.Choice([str(each) for each in Kernels]), default=str(Kernels.QUICK),
    show_default=True,
    help="Kernels of convolutions, as in 'arenite build': with direct, floats are those of the "
    "whole window to the bit.",
)  # fmt: skip
@time_limit_option()
@seed_option
@json_option
def stream(
    reading: Reading,
    model: Path,
    output: Path,
    requested: str,
    order_name: str | None,
    capacity: int | None,
    kernels: str,
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Build MODEL, a model over time, so that a run takes the rows of a hop.

    Rows that the next run needs again are kept in states. Outputs are those of the window that
    ends at the hop, once a window has been read. If the arena is larger than --capacity, the rows
    of a hop are computed in parts, one after another.
    """
    strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
    results = Results(as_json=as_json)
    results.reserve(output, sources=(model,))
    reading = replace(reading, order_name=order_name, limits=watched(time_limit_s))
    found = stream_model(
        model, reading, strategy=strategy, capacity=capacity, kernels=Kernels(kernels)
    )
    with results.file(output) as file:
        held = found.built.write(file)
        file_bytes = file.stat().st_size
    plan, streamed = found.built.plan, found.streamed

    def text(console: Console) -> None:
        console.print(name(output.name, "bold"), soft_wrap=True)
        hops = streamed.hops
        parts = f", in {hops.parts} parts" if hops.parts > 1 else ""
        window = grouped(streamed.window)
        rows = [
            ("hop", f"{plural(hops.rows, 'row')} of a window of {window}{parts}"),
            ("outputs", _outputs(found)),
            *(("window", f"{each.name} {each.reason}") for each in streamed.whole),
            ("multiply-adds", _ratio(found.multiply_adds, found.window_multiply_adds)),
            arena_row(plan),
            ("states", f"{both(streamed.state_bytes)} of the arena"),
            ("whole window", both(found.window.arena_bytes)),
            held_row(held),
            ("file", both(file_bytes)),
        ]
        console.print(facts(rows))

    results.show(
        {
            "model": str(model),
            "output": str(output),
            "hop": streamed.hops.rows,
            "parts": streamed.hops.parts,
            "window": streamed.window,
            "exact": found.is_exact,
            "warm_up": streamed.warm_up,
            "late": float(streamed.late),
            "whole": [{"step": each.name, "reason": each.reason} for each in streamed.whole],
            "multiply_adds": found.multiply_adds,
            "window_multiply_adds": found.window_multiply_adds,
            **plan_as_json(plan),
            "state_bytes": streamed.state_bytes,
            "window_height": found.window.arena_bytes,
            "held": held_as_json(held),
            "file_bytes": file_bytes,
        },
        text,
    )


def _outputs(found: StreamedModel) -> str:
    streamed = found.streamed
    runs = plural(streamed.warm_up, "run")
    if found.is_exact:
        return f"those of the model for the window that ends at the hop, after {runs}"
    late = f", {float(streamed.late):g} rows late" if streamed.late else ""
    return f"padding is the stream's{late}; settled after {runs}"


def _ratio(hop: int, window: int) -> str:
    share = f", 1 / {window / hop:.1f} of the whole window" if hop else ""
    return f"{grouped(hop)}{share}"
