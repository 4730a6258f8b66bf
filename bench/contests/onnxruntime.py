"""ONNX Runtime's default arena beside ours. A process that is measured imports this file alone."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from arenite.runtime.targets.onnxruntime import (
    PlannedSession,
    stock_memory,
    stock_options,
    stock_session,
)
from arenite.strategies import find
from bench.harness.contest import Asked, Row, contest
from bench.harness.inputs import SHAPES, light_networks, shared_onnx, zoo_file
from bench.harness.measuring import (
    in_fresh_process,
    interleaved,
    paired_ratios,
    peak_rss_bytes,
    timed,
)

_VALUES = {"sr": 16_000}
"""Inputs that cannot be random: the sample rate of silero."""
_RUNS, _SEED = 4, 0


@contest(
    {"ONNX Runtime, one thread; bytes, weights left out but for RSS": {
        "model": "", "stock in use": "", "stock holds": "", "ours": "", "outputs": "",
        "against in use": "+.1%", "with outputs": "", "bound": "", "served": "", "outside": "",
        "same": "", "stock RSS, MiB": ".1f", "RSS, MiB": ".1f", "latency": ".3f",
    }},
    models="networks of the onnx package, MobileNet v2, and ONNX models of ../shared",
)  # fmt: skip
def onnxruntime_arena(asked: Asked) -> Iterator[Row]:
    """ONNX Runtime's default arena beside ours, outputs compared bit for bit.

    One thread. RSS is the peak of a fresh process that loads the model and runs it; latencies are
    ratios of paired runs, the two sessions in turn.
    """
    found = (*light_networks(), zoo_file("mobilenet-v2", asked.folder), *shared_onnx())
    for row in asked.each(found, partial(in_fresh_process, in_onnxruntime)):
        holds = row["same"] and not row["outside"]
        within = int(str(row["with outputs"])) <= int(str(row["stock in use"]))
        asked.require(bool(holds and within), f"{row['model']}: same bits, inside, no larger")
        yield row


def in_onnxruntime(path: Path) -> Row:
    """Return the row of a model."""
    planned, stock = _ort_session(path, True), _ort_session(path, False)
    inside = PlannedSession(path, strategy=find("best"), outputs_in_arena=True)
    random = np.random.default_rng(_SEED)
    identical = True
    for _ in range(_RUNS):
        feeds = _ort_feeds(path, stock, random)
        ours, theirs = planned.run(None, feeds), stock.run(None, feeds)
        expected = [each.tobytes() for each in theirs]
        for found in (ours, inside.run(None, feeds)):
            identical = identical and [each.tobytes() for each in found] == expected
    inside_bytes = inside.arena_bytes or 0
    del inside
    feeds = _ort_feeds(path, stock, random)
    times = interleaved(
        {
            "stock": lambda: timed(lambda: stock.run(None, feeds))[0],
            "planned": lambda: timed(lambda: planned.run(None, feeds))[0],
        },
        7,
        at_least_s=4.0,
    )
    feeds = _ort_feeds(path, stock, random)
    arena = stock_memory(path, stock_options(), feeds, num_runs=_RUNS)
    outputs = sum(each.nbytes for each in ours)
    plan = planned.plan
    return {
        "model": path.stem, "stock in use": arena.in_use, "stock holds": arena.held,
        "ours": plan.height, "outputs": outputs,
        "against in use": (plan.height + outputs) / arena.in_use - 1, "with outputs": inside_bytes,
        "bound": "reached" if plan.height == plan.lower_bound else f"{plan.lower_bound:,}",
        "served": planned.last_run.inside, "outside": planned.num_outside, "same": identical,
        "stock RSS, MiB": in_fresh_process(_ort_peak, path, False) / 2**20,
        "RSS, MiB": in_fresh_process(_ort_peak, path, True) / 2**20,
        "latency": paired_ratios(times["planned"], times["stock"]),
    }  # fmt: skip


def _ort_session(path: Path, planned: bool) -> Any:
    if planned:
        return PlannedSession(path, strategy=find("best"))
    return stock_session(path, stock_options())


def _ort_peak(path: Path, planned: bool) -> int:
    session = _ort_session(path, planned)
    feeds = _ort_feeds(path, session, np.random.default_rng(_SEED))
    for _ in range(_RUNS):
        session.run(None, feeds)
    return peak_rss_bytes()


def _ort_feeds(path: Path, session: Any, random: np.random.Generator) -> dict[str, Any]:
    feeds = {}
    for value in session.get_inputs():
        shape = SHAPES.get(path.stem, {}).get(value.name, value.shape)
        feeds[value.name] = (
            np.array(_VALUES[value.name], np.int64)
            if value.name in _VALUES
            else random.standard_normal(shape, np.float32)
        )
    return feeds
