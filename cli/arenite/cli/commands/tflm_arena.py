"""`arenite tflm-arena`: the arena a microcontroller needs for a model."""

from pathlib import Path

import click
from rich.console import Console

from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import json_option, seed_option, strategy_option, time_limit_option
from arenite.cli.render import tflm
from arenite.cli.render.facts import facts, name
from arenite.pipeline.base import configured
from arenite.pipeline.making import export_for_tflm
from arenite.strategies import find


@click.command("tflm-arena")
@click.argument("model", type=click.Path(path_type=Path))
@strategy_option
@time_limit_option()
@seed_option
@json_option
def tflm_arena(
    model: Path, requested: str, time_limit_s: float | None, seed: int | None, as_json: bool
) -> None:
    """Size the tensor_arena of MODEL for TensorFlow Lite Micro, with and without our plan.

    Measures the real interpreter if the package tflite-micro is installed (extra 'tflm',
    x86-64 Linux). Otherwise only the head of the arena is computed.
    """
    strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
    export = export_for_tflm(model, strategy, watched(time_limit_s))

    def text(console: Console) -> None:
        console.print(name(model.name, "bold"), soft_wrap=True)
        console.print(facts(tflm.rows(export)))

    Results(as_json=as_json).show(tflm.as_json(model, export), text)
