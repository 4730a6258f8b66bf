"""`arenite export`: a model that another runtime runs by our plan."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console, RenderableType
from rich.text import Text

from arenite.cli.console.observer import watched
from arenite.cli.console.results import Results
from arenite.cli.options.common import json_option, seed_option, strategy_option, time_limit_option
from arenite.cli.options.model import boundary_option, memories_option, sizes_options
from arenite.cli.options.sections import SectionedCommand
from arenite.cli.options.stream import stream_options
from arenite.cli.options.types import ALIGNMENT, BUDGET, SIZE, WEIGHT_BUDGET
from arenite.cli.render import c_source, tflm
from arenite.cli.render.facts import facts, name
from arenite.pipeline.base import Reading, change, configured, order_finder
from arenite.pipeline.making import SUFFIX, CRequest, export_for_tflm, write_c
from arenite.pipeline.systems import tflm_header, write_system_c, write_system_tflm
from arenite.planner import Boundary, Budget
from arenite.planner.importers import model_format
from arenite.planner.programs import CostedMemory
from arenite.planner.quiet_onnxruntime import silence_default_logger
from arenite.runtime.cexport import Extension, Rounding
from arenite.runtime.rewrites import WeightBudget
from arenite.runtime.targets import OnnxruntimeExport, c_header, export_onnxruntime
from arenite.strategies import ORDERS, find, find_order


@dataclass(frozen=True, slots=True)
class _Request:
    """A model to export, and how to plan it."""

    model: Path
    strategy: str
    seed: int | None
    time_limit_s: float | None
    order_name: str | None
    reading: Reading


@dataclass(frozen=True, slots=True)
class _Exported:
    """A model for another runtime.

    Attributes:
        data: The file for the other runtime.
        header: Its C header, None where the runtime has no use for one.
    """

    data: bytes
    header: str | None
    rows: Iterable[tuple[str, RenderableType]]
    as_json: Mapping[str, object]


def _check_for_tflm(request: _Request) -> None:
    if request.order_name or request.reading != Reading():
        raise click.UsageError(
            "--order, --dim, --shape and --value are for --to onnxruntime and --to c"
        )


def _to_tflm(request: _Request) -> _Exported:
    _check_for_tflm(request)
    strategy = configured(
        find(request.strategy), seed=request.seed, time_limit_s=request.time_limit_s
    )
    export = export_for_tflm(request.model, strategy, watched(request.time_limit_s))
    return _Exported(
        export.data, c_header(export), tflm.rows(export), tflm.as_json(request.model, export)
    )


def _to_onnxruntime(request: _Request) -> _Exported:
    if (request.strategy, request.seed) != ("best", None):
        raise click.UsageError(
            "--strategy and --seed are for --to tflm and --to c; ONNX Runtime places its tensors "
            "itself, so choose an --order"
        )
    order_name = request.order_name or "best"
    find_best = order_finder(order_name, watched(request.time_limit_s)) or find_order(order_name)
    silence_default_logger()
    reading = request.reading
    export = export_onnxruntime(
        request.model,
        find_best,
        dims=reading.fixed_dims,
        shapes=reading.fixed_shapes,
        values=reading.values,
    )
    return _Exported(
        export.model,
        None,
        _onnxruntime_rows(export),
        _onnxruntime_as_json(request.model, export, order_name),
    )


_EXPORTERS: Final[Mapping[str, Callable[[_Request], _Exported]]] = {
    "tflm": _to_tflm,
    "onnxruntime": _to_onnxruntime,
}
"""The function that writes the file, by target."""

_MEASURES = {
    "tensors": "tensors at the peak",
    "in_use": "arena in use at the peak",
    "held": "arena held",
}
_ORT_OPTIONS = "GraphOptimizationLevel.ORT_DISABLE_ALL, ExecutionOrder.PRIORITY_BASED"

_C: Final = "c"
_TFLM: Final = "tflm"
_SYSTEM: Final = ".toml"
_OWN, _CMSIS_NN = "arenite", "cmsis-nn"


@click.command(
    cls=SectionedCommand,
    sections={
        "For C source (c)": (
            "c_name",
            "rounding",
            "alignment",
            "budget",
            "weight_budget",
            "flash",
            "memories",
            "boundary",
            "kernels",
            "extension",
            "is_tested",
            "stream_axis",
            "stream_hop",
            "stream_rate",
            "stream_padding",
        ),
        "For TensorFlow Lite Micro (tflm)": ("header_path",),
        "For TensorFlow Lite Micro and C": ("requested", "seed"),
        "For ONNX Runtime (onnxruntime) and C": ("order_name", "dims", "shapes", "values"),
    },
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    type=click.Choice([*_EXPORTERS, _C]),
    required=True,
    help="Runtime to export for, or C source.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE|DIR",
    help="File to write; for C and systems the folder, new, empty or a previous export.",
)
@click.option(
    "--name",
    "c_name",
    metavar="NAME",
    help="Prefix of every name in C.  [default: the model's file name]",
)
@click.option(
    "--rounding",
    type=click.Choice(["double", "single", "even"]),
    help="Rounding of integer products: double is bit-equal to TensorFlow Lite Micro, even to "
    "ONNX Runtime.  [default: even for ONNX and for a stream, else double]",
)
@click.option(
    "--align",
    "alignment",
    type=ALIGNMENT,
    metavar="BYTES",
    help="Alignment of every offset in the arena.  [default: 4]",
)
@click.option(
    "--header",
    "header_path",
    type=click.Path(path_type=Path),
    metavar="FILE.h",
    help="Also write a C header with the size and the map of the arena.",
)
@click.option(
    "--order",
    "order_name",
    type=click.Choice([order.name for order in ORDERS]),
    metavar="NAME",
    help="Order of the operators.  [default: best]",
)
@click.option(
    "--budget",
    type=BUDGET,
    metavar="SIZE|N%",
    help="Size limit of the arena; parts of the network run in bands of rows to meet it.",
)
@click.option(
    "--kernels",
    type=click.Choice([_OWN, _CMSIS_NN]),
    default=_OWN,
    show_default=True,
    help="Kernels that the source calls: our own, or those of CMSIS-NN 7.0.0 or later, which you "
    "provide.",
)
@click.option(
    "--extension",
    type=click.Choice([each.value for each in Extension]),
    help="Instruction set extension for CMSIS-NN: none (Cortex-M0, M3), dsp (M4, M7, M33) or mve "
    "(M55, M85).",
)
@click.option(
    "--test/--no-test",
    "is_tested",
    default=True,
    help="Compile the exported test for this machine and run it; without a passed test nothing is "
    "written. CMSIS-NN is not tested here.  [default: --test]",
)
@click.option(
    "--weights",
    "weight_budget",
    type=WEIGHT_BUDGET,
    metavar="SIZE|N%",
    help="Keep at most this many bytes of the model's weights in addressable flash; the others "
    "are fetched into the arena by functions of yours.  [default: all]",
)
@click.option(
    "--flash",
    type=SIZE,
    metavar="SIZE",
    help="Most flash for weights and code, estimated for a Cortex-M4: the quickest way within it "
    "is taken, of coded weights and smaller kernels.",
)
@memories_option
@boundary_option
@sizes_options
@stream_options(required=False)
@strategy_option
@time_limit_option()
@seed_option
@json_option
def export(
    reading: Reading,
    model: Path,
    target: str,
    output: Path,
    c_name: str | None,
    rounding: Rounding | None,
    budget: Budget | None,
    weight_budget: WeightBudget | None,
    flash: int | None,
    memories: Sequence[CostedMemory],
    boundary: str,
    kernels: str,
    extension: str | None,
    is_tested: bool,
    alignment: int | None,
    header_path: Path | None,
    order_name: str | None,
    requested: str,
    time_limit_s: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Export MODEL for another runtime, which then uses our plan without modification.

    For C and TensorFlow Lite Micro, MODEL may also be the description of a system, as
    `arenite system` takes.

    If our plan is no smaller than the runtime's own, the model is copied unchanged. C source needs
    no runtime: the folder holds kernels, weights, a test and build files.
    """
    results = Results(as_json=as_json)
    if model.suffix == SUFFIX:
        model_format(model)  # raises: a program holds no model
    if model.suffix == _SYSTEM and target not in (_C, _TFLM):
        raise click.UsageError(
            f"--to {target} takes one model; a system is for --to c and --to tflm"
        )
    if reading.ranges and target != _C:
        raise click.UsageError(
            f"--to {target} takes one size: {reading.ranges[0]} is a range, for --to c and "
            "'arenite build'"
        )
    if reading.hops is not None and target != _C:
        raise click.UsageError("--axis and --hop are for --to c and 'arenite stream'")
    if target == _C:
        if header_path is not None:
            raise click.UsageError("--header is for --to tflm; C source has a header of its own")
        reading = replace(
            reading, alignment=alignment, order_name=order_name, limits=watched(time_limit_s),
            boundary=Boundary(boundary), weight_budget=weight_budget,
        )  # fmt: skip
        strategy = configured(find(requested), seed=seed, time_limit_s=time_limit_s)
        request = CRequest(
            model, output, reading, strategy, c_name, rounding, budget,
            _cmsis_nn(kernels, extension, rounding, budget),
            is_tested, memories, flash,
        )  # fmt: skip
        if model.suffix == _SYSTEM:
            _check_for_system(reading, flash)
            written = write_system_c(request)
        else:
            written = write_c(request)
        document = {**c_source.as_json(written), "output": str(output)}
        _show(results, model, c_source.rows(written), [output], document)
        return
    if c_name is not None or rounding is not None or alignment is not None or budget is not None:
        raise click.UsageError("--name, --rounding, --align and --budget are for --to c")
    if weight_budget is not None or flash is not None:
        raise click.UsageError("--weights and --flash are for --to c")
    if memories or boundary != Boundary.INCLUDE:
        raise click.UsageError("--memory and --boundary are for --to c")
    if kernels != _OWN or extension is not None:
        raise click.UsageError("--kernels and --extension are for --to c")
    if not is_tested:
        raise click.UsageError("--no-test is for --to c")
    if model.suffix == _SYSTEM:
        asked = _Request(model, requested, seed, time_limit_s, order_name, reading)
        _export_system_for_tflm(results, asked, output, header_path)
        return
    results.reserve(output, header_path, sources=(model,))
    exported = _EXPORTERS[target](
        _Request(model, requested, seed, time_limit_s, order_name, reading)
    )
    if header_path is not None and exported.header is None:
        raise click.UsageError(f"--header is for --to tflm, not {target}")
    results.write(output, lambda: exported.data)
    results.write(header_path, lambda: exported.header or "")

    document = {
        **exported.as_json,
        "output": str(output),
        "header": None if header_path is None else str(header_path),
    }
    _show(results, model, exported.rows, results.written, document)


def _export_system_for_tflm(
    results: Results, request: _Request, folder: Path, header_path: Path | None
) -> None:
    """Write the models of a system with their parts of one plan."""
    _check_for_tflm(request)
    results.reserve(header_path, sources=(request.model,))
    strategy = configured(
        find(request.strategy), seed=request.seed, time_limit_s=request.time_limit_s
    )
    planned = write_system_tflm(
        request.model, folder, strategy=strategy, limits=watched(request.time_limit_s)
    )
    results.write(header_path, lambda: tflm_header(planned))
    document = {
        **tflm.system_as_json(request.model, planned),
        "output": str(folder),
        "header": None if header_path is None else str(header_path),
    }
    _show(results, request.model, tflm.system_rows(planned), [folder, *results.written], document)


def _check_for_system(reading: Reading, flash: int | None) -> None:
    """Refuse options that the description of a system states for each model, or has not."""
    if reading.dims or reading.shapes or reading.values:
        raise click.UsageError(
            "--dim, --shape and --value are for one model; a system states them for each"
        )
    if reading.hops is not None or reading.order_name is not None:
        raise click.UsageError("--order, --axis and --hop are for one model, not for a system")
    limits = (reading.weight_budget, flash)
    if reading.boundary is not Boundary.INCLUDE or any(limits):
        raise click.UsageError(
            "--weights, --flash and --boundary are for one model, not for a system"
        )


def _cmsis_nn(
    kernels: str, extension: str | None, rounding: Rounding | None, budget: Budget | None
) -> Extension | None:
    """Return the extension that CMSIS-NN is compiled for, None for kernels of ours."""
    if kernels == _OWN:
        if extension is not None:
            raise click.UsageError("--extension is for --kernels cmsis-nn")
        return None
    if extension is None:
        raise click.UsageError("--kernels cmsis-nn requires --extension")
    if rounding not in (None, "double"):
        raise click.UsageError("--rounding is for our own kernels; CMSIS-NN supports double only")
    if budget is not None:
        raise click.UsageError(
            "--budget is for our own kernels; CMSIS-NN cannot run bands of rows"
        )
    return Extension(extension)


def _show(
    results: Results,
    model: Path,
    rows: Iterable[tuple[str, RenderableType]],
    paths: Iterable[Path],
    document: Mapping[str, object],
) -> None:
    def text(console: Console) -> None:
        console.print(name(model.name, "bold"), soft_wrap=True)
        written = (("written", name(str(path))) for path in paths)
        console.print(facts([*rows, *written]))

    results.show(document, text)


def _onnxruntime_as_json(
    model: Path, export: OnnxruntimeExport, order_name: str
) -> dict[str, object]:
    return {
        "model": str(model),
        "target": "onnxruntime",
        "order": order_name,
        "order_used": not export.stays,
        "stock_stays": export.stays or None,
        **{
            measure: {
                "stock": getattr(export.stock, measure),
                "ordered": getattr(export.ordered, measure),
            }
            for measure in _MEASURES
        },
    }


def _onnxruntime_rows(export: OnnxruntimeExport) -> Iterator[tuple[str, RenderableType]]:
    for measure, label in _MEASURES.items():
        yield label, change(getattr(export.stock, measure), getattr(export.ordered, measure))
    if export.stays:
        yield "order to use", Text(f"stock stays: {export.stays}")
        return
    yield "outputs", "identical bit for bit"
    yield "order to use", Text("ours", "bold")
    yield "run it with", _ORT_OPTIONS
