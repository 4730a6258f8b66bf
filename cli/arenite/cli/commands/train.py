"""`arenite train`: the training step of a model, as standard ONNX."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console, RenderableType

from arenite.cli.console.results import Results
from arenite.cli.options.common import json_option
from arenite.cli.options.model import dim_option, shape_option
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.types import Parsed, number_type, positive_number
from arenite.cli.render.facts import facts
from arenite.cli.render.facts import name as styled_name
from arenite.pipeline.base import both, plural
from arenite.planner import Shapes
from arenite.planner.errors import about_file, needing

_LOSSES = ("cross-entropy", "bce", "mse")
_OPTIMISERS = ("sgd", "momentum", "adam")


def _rate(text: str) -> float:
    """Return a learning rate; NaN for `input`."""
    rate = math.nan if text == "input" else positive_number(text)
    if rate is None:
        raise ValueError(f"{text!r} is not a number above 0, or 'input'")
    return rate


@click.command(
    cls=SectionedCommand,
    sections={"Reading the model": ("batch", "dims", "shapes", "output_name")},
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="STEP.onnx",
    help="File to write.",
)  # fmt: skip
@click.option(
    "--loss", type=click.Choice(_LOSSES), required=True,
    help="Loss function: cross-entropy over classes, binary cross-entropy, or mean squared "
    "error.",
)  # fmt: skip
@click.option(
    "--optimizer", "optimiser", type=click.Choice(_OPTIMISERS), default="sgd", show_default=True,
    help="Optimiser.",
)  # fmt: skip
@click.option(
    "--lr", "rate", type=Parsed("rate", _rate), default=0.01, show_default=True, metavar="X",
    help="Learning rate; 'input' makes it an input of the step, 'rate'.",
)  # fmt: skip
@click.option(
    "--train-only", multiple=True, metavar="GLOB",
    help="Train only the parameters whose names match, such as 'head*'. Repeatable.",
)  # fmt: skip
@click.option(
    "--batch-statistics", is_flag=True,
    help="Normalise by the statistics of the batch, and update the running averages.",
)  # fmt: skip
@click.option(
    "--batch", type=number_type(1), metavar="N",
    help="Images or sequences per step: the first axis of every input.  [default: the model's]",
)  # fmt: skip
@click.option(
    "--of", "output_name", metavar="NAME",
    help="Output that the loss reads, if the model has several.",
)  # fmt: skip
@dim_option
@shape_option
@json_option
def train(
    model: Path,
    output: Path,
    loss: str,
    optimiser: str,
    rate: float,
    train_only: Sequence[str],
    batch_statistics: bool,
    batch: int | None,
    output_name: str | None,
    dims: Mapping[str, int],
    shapes: Shapes,
    as_json: bool,
) -> None:
    """Write the training step of MODEL, an .onnx file, as an ONNX file of standard operators.

    One run of the step computes the loss of a batch and every gradient, and changes the weights,
    which are states of the step: 'arenite run STEP.onnx --steps N' trains.
    """
    results = Results(as_json=as_json)
    results.reserve(output, sources=(model,))
    with needing("onnx", "onnx", "making a training step"):
        from arenite.training import TrainingRecipe, make_step, read_for_training, write_step
    recipe = TrainingRecipe(
        loss,
        optimiser,
        None if math.isnan(rate) else rate,
        tuple(train_only),
        batch_statistics,
        output_name,
    )
    program = read_for_training(model, batch, dims=dims, shapes=shapes)
    with about_file(model):
        step = make_step(program, recipe)
    write_step(output, step.model)
    size, notes = output.stat().st_size, program.notes
    state_bytes = sum(each.size for each in step.state_types.values())
    num_operators = len(step.model.graph.node)

    def text(console: Console) -> None:
        console.print(styled_name(model.name, "bold"), soft_wrap=True)
        rate = "an input" if recipe.rate is None else f"{recipe.rate:g}"
        forward = num_operators - step.num_gradients
        rows: list[tuple[str, RenderableType]] = [
            ("step", f"{recipe.loss}, {recipe.optimiser}, learning rate {rate}"),
            ("trained", plural(len(step.trained), "parameter")),
            ("operators", f"{forward} forward, {step.num_gradients} for gradients and updates"),
            ("states", f"{both(state_bytes)}, kept from one run to the next"),
            ("live", f"{both(step.peak)} besides the states at most, in the given order"),
            *(("input", f"{name}, {each}") for name, each in step.inputs.items()),
            *(("note", each) for each in notes),
            ("written", f"{output}, {both(size)}"),
        ]
        console.print(facts(rows))

    results.show(
        {
            "model": str(model),
            "output": str(output),
            "loss": recipe.loss,
            "optimizer": recipe.optimiser,
            "lr": recipe.rate,
            "inputs": {
                name: {"dtype": each.dtype.label, "shape": list(each.shape)}
                for name, each in step.inputs.items()
            },
            "trained": list(step.trained),
            "states": dict(step.states),
            "state_bytes": state_bytes,
            "live_bytes": step.peak,
            "num_operators": num_operators,
            "num_backward": step.num_gradients,
            "file_bytes": size,
            "notes": list(notes),
        },
        text,
    )
