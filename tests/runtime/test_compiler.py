"""The one way from a model to records: what the order was searched by is what is placed."""

from pathlib import Path

import pytest

from arenite.pipeline.targets.compiling import ALIGNMENT, compile_model
from arenite.strategies import find_order
from support.tiny_onnx import parse, save


@pytest.mark.parametrize("order", ["given", "best", "optimal"])
def test_the_order_is_searched_at_the_alignment_that_storage_is_shared_at(
    order: str, tmp_path: Path
) -> None:
    halves = (
        "(float[8] x) => (y) <int64[2] n = {4,4}> "
        "{ a = Abs(x) p, q = Split<axis=0>(a, n) r = Neg(p) y = Add(r, q) }"
    )
    source = compile_model(save(tmp_path, parse(halves)), order=find_order(order)).source
    assert {record.alignment for record in source.problem.records} == {ALIGNMENT}
    assert source.order is not None
    assert source.order.peak == source.problem.lower_bound == 2 * ALIGNMENT
