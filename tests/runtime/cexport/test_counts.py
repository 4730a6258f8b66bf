"""Models that count what they find, in C: counts, outputs and lengths are those of our runtime."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.session import Session
from arenite.pipeline.targets.c import lower_model_for_c
from arenite.planner.rewrites.derivation import derive
from arenite.planner.sizes import Dimension
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.export import export_c
from arenite.strategies import find
from support.detectors import DETECTOR, YOLO
from support.exported_c import Machine, compiled
from support.tiny_onnx import parse, save

N = Dimension("n", 1, 40)
COMPRESSED = """(float[n,3] x) => (float[m,3] y) <float least = {0.5}, int64[1] first = {0},
    int64[1] end = {1}, int64[1] axis = {1}, int64[1] all = {-1}>
    { a = Slice(x, first, end, axis) b = Reshape(a, all) c = Greater(b, least)
      y = Compress<axis=0>(x, c) }"""
PLACES = "(int32[n,2,3] x) => (int64[3,m] y) { y = NonZero(x) }"
CANDIDATES = DETECTOR.replace("60", "n").replace("{n,4}", "{-1,4}")

NETWORKS = {
    "detector": (DETECTOR, {}),
    "detector of a range": (CANDIDATES, {"n": N}),
    "yolo": (YOLO, {}),
    "compressed": (COMPRESSED, {"n": N}),
    "places": (PLACES, {"n": N}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_counts_and_what_depends_on_them_are_those_of_our_runtime(
    name: str, tmp_path: Path
) -> None:
    text, dims = NETWORKS[name]
    path = save(tmp_path, parse(text))
    lowered = lower_model_for_c(path, Reading(dims))
    source = lowered.compiled(derive(lowered.program, lowered.rules))
    export = export_c(source, find("best")(source.source.problem), COptions())
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    random = np.random.default_rng(5)
    highest = {each.name: each.high for each in export.interface.dimensions}
    seen = set()
    with Session(path, dims=dims) as session:
        for scale in (0.0, 0.605, 0.65, 1.0, 4.0):
            for n in (N.high, N.low, 7):
                sizes = {**highest, **dict.fromkeys(dims, n)}
                inputs = {}
                for port in export.interface.at(sizes).inputs:
                    array = scale * random.random(port.tensor.shape)
                    inputs[port.port.name] = array.astype(port.tensor.dtype.label)
                found = machine.run(inputs, sizes)
                for key, expected in session.run(inputs).items():
                    stored = expected.T if name == "places" else expected
                    np.testing.assert_array_equal(found[key], stored)
                    seen.add(len(stored))
    assert 0 in seen
    assert len(seen) > 2


def test_what_nobody_needs_of_counts_is_null(tmp_path: Path) -> None:
    path = save(tmp_path, parse(YOLO))
    lowered = lower_model_for_c(path)
    source = lowered.compiled(derive(lowered.program, lowered.rules))
    export = export_c(source, find("best")(source.source.problem), COptions(name="yolo"))
    header = export.files["yolo.h"].decode()
    assert "#define YOLO_COUNT_KEPT_HIGH 30\n" in header
    assert "int yolo_run(uint8_t *arena, int32_t *kept);" in header
    assert "static inline int32_t yolo_output_y_elements(int32_t kept)" in header
    library = compiled(export, tmp_path / "c")
    arena = Machine.of(export, library).arena
    assert ctypes.CDLL(str(library)).yolo_run(ctypes.c_void_p(arena.ctypes.data), None) == 0
