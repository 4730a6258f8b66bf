"""Damaged models are refused with an error of ours, or exported."""

import random
from pathlib import Path

import pytest

from arenite.pipeline.targets.compiling_c import compile_for_c
from arenite.planner.errors import AreniteError
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.export import export_c
from arenite.strategies import find
from support.quantised_chain import mobile, residual
from support.tflite_layers import integer_lstm

MODELS = {"mobile": mobile, "residual": residual, "lstm": integer_lstm}
VALUES = (0, 1, 127, 128, 255)


@pytest.mark.parametrize("name", MODELS)
def test_bytes_that_are_changed_lead_to_no_other_error(name: str, tmp_path: Path) -> None:
    data, source = MODELS[name](), random.Random(4)
    path = tmp_path / "model.tflite"
    outcomes = set()
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(source.choice((1, 2))):
            damaged[source.randrange(len(data))] = source.choice(VALUES)
        path.write_bytes(damaged)
        try:
            model = compile_for_c(path)
            export_c(model, find("greedy-by-size")(model.source.problem), COptions())
        except AreniteError:
            outcomes.add("refused")
        else:
            outcomes.add("exported")
    assert outcomes == {"refused", "exported"}
