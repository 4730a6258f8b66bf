"""Policies side by side, a table for each budget."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from arenite.cli.render.facts import facts, listing, name
from arenite.pipeline.base import both, duration, grouped, one_line, percent
from arenite.pipeline.comparison import ModelPolicies, PolicyResult

_COLUMNS = (
    "", "policy", "peak, B>", "of none>", "extra time>", "moved, B>", "stalls>", "again>",
    "decided in>",
)  # fmt: skip


def policy_tables(model: ModelPolicies) -> RenderableType:
    """Return the tables of a model, and why some policies are not in them."""
    parts: list[RenderableType] = [facts(_facts(model)), Text()]
    for budget in dict.fromkeys(result.budget for result in model.results):
        results = [result for result in model.results if result.budget == budget]
        limit = results[0].limit
        title = f"budget {budget}" + ("" if limit is None else f", {both(limit)}")
        parts.append(Text(title, "bold"))
        parts.append(listing(_COLUMNS, _rows(model, results)))
        parts.append(Text())
    reasons = {
        (result.policy, one_line(result.reason)): None
        for result in model.results
        if result.reason and result.reached is None
    }
    parts += [Text(f"{policy}: {reason}", "dim") for policy, reason in reasons]
    parts += [Text(remark, "dim") for remark in model.remarks]
    return Group(*parts)


def _facts(model: ModelPolicies) -> Iterator[tuple[str, str]]:
    yield "steps", grouped(model.num_steps)
    yield "peak", both(model.peak)
    yield "largest working set", f"{both(model.working_set)}; no policy gets lower"
    yield "predicted time", duration(model.seconds)
    yield "by the", model.whose
    yield "", model.advice


def _rows(
    model: ModelPolicies, results: Sequence[PolicyResult]
) -> Iterator[Sequence[RenderableType]]:
    times = sorted(result.extra_time for result in results if result.extra_time is not None)
    for result in results:
        wins = result.limit is not None and result.extra_time in times[:1]
        style = "bold green" if wins else ""
        mark = Text("*" if wins else "", style)
        label = name(result.policy, style)
        if result.peak is None or result.extra_time is None:
            reached = result.reached
            yield (
                mark, label, "-" if reached is None else f"({grouped(reached)})",
                "-" if reached is None else f"({percent(reached / model.peak)})",
                "-", "-", "-", "-", duration(result.decide_s),
            )  # fmt: skip
            continue
        yield (
            mark,
            label,
            grouped(result.peak),
            percent(result.peak / model.peak if model.peak else 0.0),
            Text(percent(result.extra_time), style),
            grouped((result.bytes_out or 0) + (result.bytes_back or 0)),
            duration(result.stalled_s or 0.0),
            grouped(result.num_repeated or 0),
            duration(result.decide_s),
        )
