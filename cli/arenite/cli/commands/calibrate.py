"""`arenite calibrate`: measure the speeds of this machine for predictions."""

import json
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.results import Results
from arenite.cli.console.streams import note, progress
from arenite.cli.options.common import json_option
from arenite.cli.render.facts import facts, listing, name
from arenite.pipeline.making import (
    cache_file,
    in_speeds,
    measured,
    measured_link,
    table,
    with_measured,
)
from arenite.runtime import processor_name


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
    help="File to write instead; `arenite fit --costs FILE` reads it, also on another machine.",
)  # fmt: skip
@json_option
def calibrate(output: Path | None, as_json: bool) -> None:
    """Benchmark this machine for the latency estimates of `arenite fit`.

    Small programs run for a few seconds on one thread, and a temporary file in TMPDIR or /tmp is
    written and read as spilled tensors are. The results are stored by processor name in
    $XDG_CACHE_HOME/arenite/costs.json, by default below ~/.cache.
    """
    results = Results(as_json=as_json)
    results.reserve(output)
    processor = processor_name()
    with progress().status("calibrate: running small programs"):
        found = measured()
        try:
            link = measured_link()
        except OSError as error:
            note(f"the link to spilled tensors cannot be measured, its speed is assumed: {error}")
        else:
            found = {label: replace(costs, link=link) for label, costs in found.items()}
    if output is None:
        path = cache_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        results.write(path, lambda: with_measured(path, processor, found))
    else:
        path = output
        results.write(path, lambda: json.dumps(table({processor: found}), indent=1) + "\n")

    def show(console: Console) -> None:
        console.print(name(processor, "bold"), soft_wrap=True)
        rows = [
            [
                label,
                *(f"{costs.by_operator[each] / 1e9:.3g}" for each in sorted(costs.by_operator)),
                f"{costs.bytes_per_s / 1e9:.3g}",
                f"{1e9 * costs.step_s:.0f}",
            ]
            for label, costs in found.items()
        ]
        kinds = [f"{each}, GMAC/s>" for each in sorted(next(iter(found.values())).by_operator)]
        console.print(listing(["elements", *kinds, "memory, GB/s>", "a turn, ns>"], rows))
        link = next(iter(found.values())).link
        console.print(facts([("link", in_speeds(link)), ("written", name(str(path)))]))

    document = {
        "processor": processor,
        "costs": table({processor: found})["processors"][processor],
        "output": str(path),
    }
    results.show(document, show)
