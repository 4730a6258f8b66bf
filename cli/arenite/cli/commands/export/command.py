"""`arenite export`: a model that another runtime runs by our plan."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import RenderableType

from arenite.cli.commands.export import onnxruntime
from arenite.cli.console.output import check_destination, emit_json, results
from arenite.cli.options.shared import (
    dim_option,
    json_option,
    seed_option,
    shape_option,
    strategy_option,
    time_limit_option,
)
from arenite.cli.planning import tflm
from arenite.cli.planning.order_search import order_finder
from arenite.cli.render.tables import facts
from arenite.cli.render.text import name
from arenite.planner.files import write_atomically
from arenite.planner.importers import Shapes
from arenite.runtime.targets.onnxruntime import export_onnxruntime
from arenite.runtime.targets.tflm.header import c_header
from arenite.strategies.order import ORDERS, find_order


@dataclass(frozen=True, slots=True)
class _Request:
    """What to export, and how to plan it."""

    model: Path
    strategy: str
    seed: int | None
    time_limit_s: float | None
    order_name: str | None
    dims: Mapping[str, int]
    shapes: Shapes


@dataclass(frozen=True, slots=True)
class _Exported:
    """What came of it.

    Attributes:
        data: The file for the other runtime.
        header: Its C header, None where the runtime has no use for one.
        rows: What to tell people.
        as_json: What `--json` says.
    """

    data: bytes
    header: str | None
    rows: Iterable[tuple[str, RenderableType]]
    as_json: Mapping[str, object]


def _to_tflm(request: _Request) -> _Exported:
    if request.order_name or request.dims or request.shapes:
        raise click.UsageError("--order, --dim and --shape are for the target 'onnxruntime'")
    export = tflm.exported(request.model, request.strategy, request.seed, request.time_limit_s)
    return _Exported(
        export.data, c_header(export), tflm.rows(export), tflm.as_json(request.model, export)
    )


def _to_onnxruntime(request: _Request) -> _Exported:
    if (request.strategy, request.seed) != ("best", None):
        raise click.UsageError(
            "--strategy and --seed: the runtime places its tensors itself; choose an --order"
        )
    order_name = request.order_name or "best"
    find = order_finder(order_name, request.time_limit_s) or find_order(order_name)
    export = export_onnxruntime(request.model, find, dims=request.dims, shapes=request.shapes)
    return _Exported(
        export.model,
        None,
        onnxruntime.rows(export),
        onnxruntime.as_json(request.model, export, order_name),
    )


_EXPORTERS: Final[Mapping[str, Callable[[_Request], _Exported]]] = {
    "tflm": _to_tflm,
    "onnxruntime": _to_onnxruntime,
}
"""For each target, what makes its file."""


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    type=click.Choice(list(_EXPORTERS)),
    required=True,
    help="The runtime that is to run it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Write the planned model.",
)
@click.option(
    "--header",
    "header_path",
    type=click.Path(path_type=Path),
    metavar="FILE.h",
    help="Write a C header too: the arena's size, a check, a map (tflm).",
)
@click.option(
    "--order",
    "order_name",
    type=click.Choice([order.name for order in ORDERS]),
    help="What orders the operators (onnxruntime).  [default: best]",
)
@dim_option
@shape_option
@strategy_option
@time_limit_option(None, "Seconds that each search, of an order or a placement, may take.")
@seed_option
@json_option
def export(
    model: Path,
    target: str,
    output: Path,
    header_path: Path | None,
    order_name: str | None,
    dims: Mapping[str, int],
    shapes: Shapes,
    requested: str,
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Write MODEL so that another runtime, unmodified, runs it by our plan.

    Where our plan is no gain the model is copied as it is, and the command says so.
    """
    check_destination(output, model)
    if header_path is not None:
        check_destination(header_path, model, output)
        if header_path.resolve() == output.resolve():
            raise click.UsageError("--header and --output name the same file")
    exported = _EXPORTERS[target](
        _Request(model, requested, seed, time_limit_s, order_name, dims, shapes)
    )
    if header_path is not None and exported.header is None:
        raise click.UsageError(f"--header: there is none for the target {target!r}")
    write_atomically(output, exported.data)
    if header_path is not None and exported.header is not None:
        write_atomically(header_path, exported.header.encode())
    written = [path for path in (output, header_path) if path is not None]
    if as_json:
        emit_json(
            {
                **exported.as_json,
                "output": str(output),
                "header": None if header_path is None else str(header_path),
            }
        )
        return
    console = results()
    console.print(name(model.name, "bold"), soft_wrap=True)
    console.print(facts([*exported.rows, *(("written", name(str(path))) for path in written)]))
