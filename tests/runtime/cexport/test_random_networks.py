"""Random networks compute in compiled C what our runtime computes, whole and in bands of rows."""

import shutil
from pathlib import Path

import pytest

from arenite.runtime.cexport import HostTest, run_on_host
from support.c_fuzz import SANITIZED, check, exports, random_model

pytest.importorskip("onnxruntime.quantization")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
GROUP = 5


@pytest.mark.parametrize("group", range(10))
def test_random_networks_agree_with_our_runtime_under_sanitizers(
    group: int, tmp_path: Path
) -> None:
    outcomes = [check(seed, tmp_path) for seed in range(GROUP * group, GROUP * (group + 1))]
    assert not all(each.startswith("refused") for each in outcomes)


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
