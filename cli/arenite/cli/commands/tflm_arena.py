"""`arenite tflm-arena`: the arena a microcontroller needs for a model."""

from pathlib import Path

import click

from arenite.cli.console.output import emit_json, results
from arenite.cli.options.shared import json_option, seed_option, strategy_option, time_limit_option
from arenite.cli.planning import tflm
from arenite.cli.render.tables import facts
from arenite.cli.render.text import name


@click.command("tflm-arena")
@click.argument("model", type=click.Path(path_type=Path))
@strategy_option
@time_limit_option(None, "Seconds a search may take, if the strategy searches.")
@seed_option
@json_option
def tflm_arena(
    model: Path, requested: str, time_limit_s: float | None, seed: int | None, as_json: bool
) -> None:
    """Say what tensor_arena MODEL needs in TensorFlow Lite Micro, and with our plan.

    Measured in the real interpreter where the package tflite-micro is installed (the extra
    tflm; x86-64 Linux), else the head alone is computed.
    """
    export = tflm.exported(model, requested, seed, time_limit_s)
    if as_json:
        emit_json(tflm.as_json(model, export))
        return
    console = results()
    console.print(name(model.name, "bold"), soft_wrap=True)
    console.print(facts(tflm.rows(export)))
