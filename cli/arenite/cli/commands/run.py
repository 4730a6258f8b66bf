"""`arenite run`: one inference, on files."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from arenite.cli.images import SUFFIXES, read_image
from arenite.cli.options import dim_option, json_option, shape_option, strategy_option
from arenite.cli.output import OutputError, check_destination, emit_json, results
from arenite.cli.programs import build_program
from arenite.cli.render.numbers import both, duration
from arenite.cli.render.tables import facts, listing
from arenite.cli.render.text import name as styled_name
from arenite.planner.errors import AreniteError
from arenite.planner.files import write_atomically
from arenite.planner.importers import Shapes
from arenite.runtime.session import Port, Session
from arenite.strategies import find

_PROGRAM_SUFFIX = ".arena"


class InputFileError(AreniteError):
    """A file cannot be an input.

    Attributes:
        path: The file.
        reason: Why not.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--input", "feeds", multiple=True, metavar="[NAME=]FILE",
    help="A .npy, a .npz with all inputs, or a picture; repeatable.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="OUT.npz",
    help="Write the outputs.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True,
              help="That compute.")  # fmt: skip
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE",
              help="Names of the classes, one a line.")  # fmt: skip
@click.option("--top", type=click.IntRange(1), default=5, show_default=True,
              help="How many classes to print.")  # fmt: skip
@click.option("--mean", default="127.5", show_default=True, metavar="X[,Y,Z]",
              help="Subtracted from the pixels of a picture.")  # fmt: skip
@click.option("--std", default="127.5", show_default=True, metavar="X[,Y,Z]",
              help="What they are divided by then.")  # fmt: skip
@click.option("--profile", is_flag=True, help="Print what the slowest steps took.")
@click.option("--poison", is_flag=True, help="Fill what is dead with NaN: a wrong plan shows.")
@strategy_option
@dim_option
@shape_option
@json_option
def run(
    model: Path,
    feeds: Sequence[str],
    output: Path | None,
    threads: int,
    labels: Path | None,
    top: int,
    mean: str,
    std: str,
    profile: bool,
    poison: bool,
    requested: str,
    dims: Mapping[str, int],
    shapes: Shapes,
    as_json: bool,
) -> None:
    """Run MODEL once: an .onnx or .tflite file, or an .arena that `build` made.

    With `--labels`, or an output that looks like classes, the likeliest are printed.
    """
    if output is not None:
        check_destination(output, model)
    names = None if labels is None else _read_labels(labels)
    strategy = find(requested)
    with tempfile.TemporaryDirectory(prefix="arenite-run-") as folder:
        program = model
        if model.suffix != _PROGRAM_SUFFIX:
            program = Path(folder) / "model.arena"
            build_program(model, program, dims=dims, shapes=shapes, strategy=strategy)
        with Session(program, threads=threads, poison=poison) as session:
            inputs = _read_inputs(feeds, session.inputs, _numbers(mean), _numbers(std))
            outputs = session.run(inputs)
            steps = session.profile() if profile else ()
            arena_bytes = session.arena_bytes
    if output is not None:
        _write(output, outputs)
    likeliest = _likeliest(outputs, names, top)
    if as_json:
        emit_json(
            {
                "model": str(model),
                "arena_bytes": arena_bytes,
                "outputs": {
                    key: {"shape": list(value.shape), "dtype": str(value.dtype)}
                    for key, value in outputs.items()
                },
                "top": [{"class": index, "label": label, "score": score}
                        for index, label, score in likeliest],
                "output": output and str(output),
            }
        )  # fmt: skip
        return
    console = results()
    console.print(styled_name(model.name, "bold"), soft_wrap=True)
    console.print(
        facts(
            [
                ("arena", both(arena_bytes)),
                *((key, f"{value.dtype} {'x'.join(map(str, value.shape))}, {_range(value)}")
                  for key, value in outputs.items()),
            ]
        )
    )  # fmt: skip
    if likeliest:
        console.print()
        console.print(
            listing(
                ("class>", "score>", "label"),
                ((str(index), f"{score:.4f}", label) for index, label, score in likeliest),
            )
        )
    if steps:
        slowest = sorted(steps, key=lambda step: -step.nanoseconds)[:20]
        console.print()
        console.print(
            listing(
                ("step", "operator", "backend", "time>", "bytes>"),
                (
                    (step.name, step.operator, step.backend,
                     duration(step.nanoseconds / 1e9), f"{step.bytes:,}")
                    for step in slowest
                ),
            )
        )  # fmt: skip


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, 3):
        raise click.BadParameter(f"{text!r} is not one number, or three with commas between")
    return numbers


def _read_inputs(
    feeds: Sequence[str], ports: Sequence[Port], mean: tuple[float, ...], std: tuple[float, ...]
) -> dict[str, NDArray[Any]]:
    by_name = {port.name: port for port in ports}
    found: dict[str, NDArray[Any]] = {}
    for feed in feeds:
        key, separator, text = feed.partition("=")
        path = Path(text if separator else feed)
        if not separator and path.suffix == ".npz":
            found.update(_load(path))
            continue
        if not separator and len(ports) > 1:
            raise click.UsageError(
                f"{feed!r}: the model has {len(ports)} inputs; say which, as NAME={feed}: "
                f"{', '.join(by_name)}"
            )
        target = key if separator else ports[0].name
        if path.suffix.lower() in SUFFIXES and target in by_name:
            port = by_name[target]
            found[target] = read_image(path, port.shape, port.dtype, mean, std)
        else:
            found[target] = next(iter(_load(path).values()))
    return found


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputFileError(path, f"cannot be read as .npy or .npz: {error}") from error
    if isinstance(loaded, np.ndarray):
        return {"": loaded}
    with loaded:
        return {key: loaded[key] for key in loaded.files}


def _read_labels(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputFileError(path, f"cannot be read: {error.strerror}") from error


def _likeliest(
    outputs: Mapping[str, NDArray[Any]], names: list[str] | None, top: int
) -> list[tuple[int, str, float]]:
    """Return class, label and score of the best, where there is one row of scores."""
    if len(outputs) != 1:
        return []
    (scores,) = outputs.values()
    flat = scores.reshape(-1)
    is_row = scores.ndim >= 1 and scores.shape[-1] == flat.size and flat.size > 1
    if not is_row or (names is None and flat.size < 10) or flat.dtype.kind not in "fiu":
        return []
    best = np.argsort(-flat.astype(np.float64), kind="stable")[:top]
    labels = names or []
    return [(int(i), labels[i] if i < len(labels) else "", float(flat[i])) for i in best]


def _range(value: NDArray[Any]) -> str:
    if value.size == 0 or value.dtype.kind not in "fiu":
        return "no numbers"
    return f"{value.min():.6g} to {value.max():.6g}"


def _write(path: Path, outputs: Mapping[str, NDArray[Any]]) -> None:
    with tempfile.SpooledTemporaryFile() as stream:
        np.savez(stream, allow_pickle=False, **outputs)
        stream.seek(0)
        try:
            write_atomically(path, stream.read())
        except OSError as error:
            raise OutputError(path, f"cannot be written: {error.strerror}") from error
