"""Random networks compute in compiled C what our runtime computes, whole and in bands of rows."""

import shutil
from pathlib import Path

import pytest

from arenite.runtime.cexport import HostTest, run_on_host
from support.c_fuzz import SANITIZED, check, exports, random_model
from support.tiny_onnx import parse, save, with_random_weights

pytest.importorskip("onnxruntime.quantization")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
GROUP = 5


@pytest.mark.parametrize("group", range(10))
def test_random_networks_agree_with_our_runtime_under_sanitizers(
    group: int, tmp_path: Path
) -> None:
    outcomes = [check(seed, tmp_path) for seed in range(GROUP * group, GROUP * (group + 1))]
    assert not all(each.startswith("refused") for each in outcomes)


READ_WHOLE_AND_BY_ROWS = """(float[1,1,7,3] x) => (t1, t5, t6)
    <float[6,1,1,2] w, float[6] b, float[1,6,1,1] low, int64[2] parts = {6, 1},
    int64[1,1,7,3] factor = {2,2,3,2,3,1,3,3,1,2,3,2,1,3,2,3,1,2,2,3,3}> {
    t0 = Conv<strides=[2,1]>(x, w, b) t1 = Max(t0, low) t2 = Cast<to=7>(x) t3 = Mul(t2, factor)
    t4 = Cast<to=1>(t3) t5, t7 = Split<axis=2>(t4, parts) t6 = Relu(t7) }"""


def test_rows_that_windows_skip_are_found_by_steps_that_read_all(tmp_path: Path) -> None:
    whole, banded = exports(save(tmp_path, with_random_weights(parse(READ_WHOLE_AND_BY_ROWS))))
    for export in (whole, banded):
        assert run_on_host(export.name, export.files, SANITIZED) == HostTest(0)


def test_wrong_sums_are_found(tmp_path: Path) -> None:
    found = (exports(random_model(seed, tmp_path))[0] for seed in range(1, 50))
    export = next(each for each in found if b"sums[0] = a;" in each.files[f"{each.name}.c"])
    name = f"{export.name}.c"
    text = export.files[name].decode()
    broken = {**export.files, name: text.replace("sums[0] = a;", "sums[0] = a + a;").encode()}
    assert run_on_host(export.name, export.files, SANITIZED) == HostTest(0)
    assert (run_on_host(export.name, broken, SANITIZED).num_wrong or 0) > 0


def test_a_warning_of_the_compiler_is_told(tmp_path: Path) -> None:
    export = exports(random_model(1, tmp_path))[0]
    name = f"{export.name}.c"
    broken = {**export.files, name: export.files[name] + b"static int unused;\n"}
    test = run_on_host(export.name, broken, SANITIZED)
    assert test.num_wrong is None
    assert "unused" in test.message
