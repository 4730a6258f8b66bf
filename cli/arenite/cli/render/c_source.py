"""Facts of a model, or a system, exported as C source."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from arenite.pipeline.base import both, dimensions_as_json, plural
from arenite.pipeline.making import ExportedC, FlashPoint
from arenite.runtime.cexport import CMemory


def as_json(exported: ExportedC) -> dict[str, object]:
    """Return the facts of an export."""
    return {
        "model": str(exported.request.model),
        "target": "c",
        "strategy": exported.plan.strategy,
        "height": exported.plan.height,
        "lower_bound": exported.plan.lower_bound,
        "optimal": exported.plan.optimal,
        "name": exported.export.name,
        "arena_bytes": exported.export.arena_bytes,
        "weight_bytes": exported.export.weight_bytes,
        "external_bytes": exported.export.external_bytes,
        "code_bytes": exported.export.estimate.code_bytes,
        "cycles": exported.export.estimate.cycles,
        "flash_frontier": [
            {
                "flash_bytes": each.flash,
                "cycles": each.cycles,
                "coded_layers": len(each.coded),
                "quick_kernels": each.is_quick,
            }
            for each in exported.frontier
        ],
        "alignment": exported.export.interface.alignment,
        "memories": {each.region: each.size for each in _memories(exported)},
        "plan_digest": exported.export.digest,
        "kernels": list(exported.export.kernels),
        "extension": exported.request.extension,
        "rounding": exported.export.rounding,
        "dimensions": dimensions_as_json(exported.export.interface.dimensions),
        "reference": exported.reference,
        "tested": exported.test.num_wrong == 0,
        "macs_ratio": exported.multiply_adds_ratio,
        "runs": [f"{each.name}_run" for each in exported.export.component.models],
        "files": sorted(exported.export.files),
    }


def _memories(exported: ExportedC) -> Sequence[CMemory]:
    """Return the memories of the board that were named."""
    return [each for each in exported.export.interface.memories if each.region]


def rows(exported: ExportedC) -> Iterator[tuple[str, RenderableType]]:
    """Yield the facts for people."""
    yield "arena", both(exported.export.arena_bytes)
    if exported.multiply_adds_ratio > 1:
        yield "price", f"{exported.multiply_adds_ratio:.3f} times the multiply-adds"
    for each in _memories(exported):
        yield each.region, both(each.size)
    yield "weights", both(exported.export.weight_bytes)
    estimate = exported.export.estimate
    yield "code, estimated", both(estimate.code_bytes)
    if estimate.cycles is not None:
        yield "cycles, estimated", f"{estimate.cycles / 1e6:,.1f} M on a Cortex-M4"
    for point in _some(exported.frontier):
        yield "flash, cycles", _flash_point(point)
    if exported.export.external_bytes:
        yield "fetched weights", both(exported.export.external_bytes)
    yield "lower bound", both(exported.plan.lower_bound)
    yield "strategy", Text(exported.plan.strategy)
    yield "kernels", Text(", ".join(exported.export.kernels))
    yield "test checks outputs of", Text(exported.reference)
    why = exported.test.message.partition("\n")[0]
    yield "test on this machine", Text(f"not run: {why}" if why else "passed")
    if exported.export.interface.dimensions:
        yield "sizes", Text(", ".join(map(str, exported.export.interface.dimensions)))
    for model in exported.export.component.models:
        arena = "&memories" if model.memories else "arena"
        arguments = ", ".join([arena, *model.arguments])
        yield "call", Text(f"{model.name}_run({arguments})", "bold")


_MOST_SHOWN: Final = 8


def _some(frontier: Sequence[FlashPoint]) -> list[FlashPoint]:
    """Return a few points, spread evenly, with both ends."""
    count = min(_MOST_SHOWN, len(frontier))
    last = max(1, count - 1)
    return [frontier[index * (len(frontier) - 1) // last] for index in range(count)]


def _flash_point(point: FlashPoint) -> str:
    """Return a way between small and quick in words."""
    cycles = "not estimated" if point.cycles is None else f"{point.cycles / 1e6:,.1f} M"
    how = [] if point.is_quick else ["smaller kernels"]
    if point.coded:
        how.append(f"{plural(len(point.coded), 'layer')} coded")
    return f"{both(point.flash)}, {cycles}: {', '.join(how) or 'quickest'}"
