"""All about one model, in words."""

from collections.abc import Sequence

from arenite.pipeline.base.ranges import sizes_text
from arenite.pipeline.base.text import (
    both,
    duration,
    elided,
    exact,
    gap,
    grouped,
    percent,
    plural,
    printable,
)
from arenite.pipeline.report.compression import CompressionResult
from arenite.pipeline.report.model import Cell, Figure, Layers, ModelSection, StrategyRow, Trade
from arenite.pipeline.report.overview import LAST
from arenite.pipeline.report.results import LayerWeights, ModelReport, PeerResult, StrategyResult
from arenite.pipeline.report.results import layer_weights as weights_of
from arenite.pipeline.report.summary import lowest_first, winning
from arenite.planner.units import format_size

_NUM_LAYERS = 12
_NAME_LENGTH = 64
_PEERS = "Peers state their own tensors and scratch, so the bound is not theirs."


def section(
    report: ModelReport,
    chosen: Sequence[StrategyResult],
    figure: Figure | None,
    trade: Trade | None,
    compression: CompressionResult | None,
    *,
    alone: bool,
) -> ModelSection:
    """Return the section of a model.

    Args:
        chosen: The strategies whose maps the page holds.
        figure: The data of its drawing.
        trade: Its arenas in bands of rows, if known.
        compression: The result of compressing its weights, if known.
        alone: Whether it is the only model, whose figures stand in the headline.
    """
    diagnosis, graph = report.diagnosis, report.source.program
    layers = weights_of(report.source)
    return ModelSection(
        _title(report, trade, alone=alone),
        () if alone else _figures(report),
        "" if alone or diagnosis is None else printable(diagnosis.advice),
        trade,
        figure,
        (
            *(
                _strategy_row(report, result, shown=result in chosen)
                for result in lowest_first(report)
            ),
            *map(_peer_row, report.peers),
        ),
        _remarks(report),
        (
            *((_sizes(report),) if report.sizes else ()),
            *((_weights(layers),) if layers else ()),
            *((_compressed(compression),) if compression else ()),
        ),
        () if graph is None else tuple(f"note: {printable(note)}" for note in graph.notes),
    )


def _title(report: ModelReport, trade: Trade | None, *, alone: bool) -> str:
    if alone:
        return "Memory map" if trade is None else "Memory"
    return printable(report.source.name)


def _figures(report: ModelReport) -> tuple[tuple[str, str, str], ...]:
    winner = report.winner
    if winner is None:
        return ()
    naive, bound = report.naive, report.best_bound
    above = "none: optimal" if report.proved(winner) else gap(winner.height, bound)
    return (
        ("arena", format_size(winner.height), exact(winner.height)),
        ("without reuse", format_size(naive), exact(naive)),
        ("saved", percent(1 - winner.height / naive) if naive else "-", ""),
        ("lower bound", format_size(bound), exact(bound)),
        ("above it", above, ""),
    )


def _strategy_row(report: ModelReport, result: StrategyResult, *, shown: bool) -> StrategyRow:
    proved, height, naive = report.proved(result), result.height, report.naive
    stopped = ", stopped" if result.interrupted else ""
    return StrategyRow(
        result.strategy,
        result.kind.value,
        (
            Cell(grouped(height), height),
            Cell("none" if proved else gap(height, report.best_bound), height),
            Cell(percent(1 - height / naive) if naive else "-", naive - height),
            Cell(duration(result.seconds) + stopped, result.seconds),
            Cell("optimal" if proved else "", 0 if proved else 1),
        ),
        wins=winning(report, result),
        shown=shown,
    )


def _peer_row(peer: PeerResult) -> StrategyRow:
    arena = Cell("-", LAST) if peer.arena is None else Cell(grouped(peer.arena), peer.arena)
    unknown = (Cell("", LAST), Cell("", -LAST), Cell("", LAST), Cell("", 2))
    return StrategyRow(peer.peer, "peer", (arena, *unknown), is_peer=True)


def _remarks(report: ModelReport) -> tuple[str, ...]:
    silent = [each for each in report.peers if each.arena is None]
    reasons = [f"{each.peer}: {printable(each.reason)}." for each in silent]
    about_peers = (" ".join((_PEERS, *reasons)),) if report.peers else ()
    skipped = (f"{each.strategy}: {printable(each.reason)}" for each in report.skipped)
    return (*about_peers, *skipped)


def _sizes(report: ModelReport) -> Layers:
    """Return what single sizes of a range take, beside the plan for all of them."""
    ranges = ", ".join(map(str, report.source.dimensions))
    height = report.winner.height if report.winner is not None and report.winner.height else 1
    return Layers(
        "Height over size",
        f"One plan for {printable(ranges)} takes {both(height)}. Pages of 4 KiB that a size "
        "touches, its lower bound and the lowest plan for it alone:",
        ("size", "touched", "lower bound", "lowest alone"),
        tuple(
            (
                (
                    printable(sizes_text(each.touched.sizes)),
                    f"{grouped(each.touched.resident)} B",
                    f"{grouped(each.lower_bound)} B",
                    f"{grouped(min(each.heights.values()))} B" if each.heights else "-",
                ),
                f"{100 * each.lower_bound / height:.2f}",
            )
            for each in report.sizes
        ),
    )


def _weights(layers: Sequence[LayerWeights]) -> Layers:
    total = sum(layer.size for layer in layers)
    rest = "; the largest:" if len(layers) > _NUM_LAYERS else "."
    return Layers(
        "Weights",
        f"{both(total)} in {plural(len(layers), 'layer')}, outside the arena{rest}",
        (),
        tuple(
            (
                (_name(layer.operator), printable(layer.label), f"{grouped(layer.size)} B"),
                f"{100 * layer.size / layers[0].size:.2f}",
            )
            for layer in layers[:_NUM_LAYERS]
        ),
    )


def _compressed(result: CompressionResult) -> Layers:
    said = f"{both(result.size)} become {both(result.coded)}, "
    said += f"{result.size / result.coded:.1f} times less"
    if result.accuracy:
        before, after = result.accuracy
        said += f"; accuracy {percent(before)} before, {percent(after)} after"
    elif result.output_error is not None:
        said += f"; the outputs differ by {percent(result.output_error)} of their length"
    return Layers(
        "Compressed weights",
        said + ("; the largest layers:" if len(result.layers) > _NUM_LAYERS else "."),
        ("layer", "before", "kept", "bits", "coded"),
        tuple(
            (
                (
                    _name(layer.name), f"{grouped(layer.size)} B", percent(layer.kept),
                    str(layer.bits or 32), f"{grouped(layer.coded)} B",
                ),
                f"{100 * layer.coded / layer.size:.2f}",
            )
            for layer in result.layers[:_NUM_LAYERS]
        ),
    )  # fmt: skip


def _name(text: str) -> str:
    return elided(printable(text), _NAME_LENGTH)
