"""Facts of a model exported as C source."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from arenite.pipeline.base import both
from arenite.pipeline.making import ExportedC


def as_json(exported: ExportedC) -> dict[str, object]:
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
        "alignment": exported.export.interface.alignment,
        "plan_digest": exported.export.digest,
        "kernels": list(exported.export.kernels),
        "extension": exported.request.extension,
        "rounding": exported.export.rounding,
        "reference": exported.reference,
        "tested": exported.test.num_wrong == 0,
        "files": sorted(exported.export.files),
    }


def rows(exported: ExportedC) -> Iterator[tuple[str, RenderableType]]:
    """Yield the facts for people."""
    yield "arena", both(exported.export.arena_bytes)
    yield "weights", both(exported.export.weight_bytes)
    yield "lower bound", both(exported.plan.lower_bound)
    yield "strategy", Text(exported.plan.strategy)
    yield "kernels", Text(", ".join(exported.export.kernels))
    yield "test checks outputs of", Text(exported.reference)
    why = exported.test.message.partition("\n")[0]
    yield "test on this machine", Text(f"not run: {why}" if why else "passed")
    yield "call", Text(f"{exported.export.name}_run(arena)", "bold")
