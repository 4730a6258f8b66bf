"""The loader under the sanitizers: damaged files are refused or run, without a fault."""

import os
import subprocess
from pathlib import Path

from arenite.runtime.lowering.streaming import WeightBudget
from support.coded_programs import build_coded, network
from support.running import MANY_KINDS, build, with_random_weights
from support.tiny_onnx import parse, save
from support.tiny_programs import classifier

FUZZ = Path(__file__).resolve().parents[2] / "runtime" / "fuzz"
COUNT = int(os.environ.get("ARENITE_FUZZ_COUNT", "300"))


def test_damaged_programs_load_and_run_without_a_fault(sanitised, tmp_path):
    files = [classifier(tmp_path, quantised=quantised) for quantised in (False, True)]
    files.append(build(save(tmp_path, with_random_weights(parse(MANY_KINDS))), tmp_path))
    for budget in (None, WeightBudget(30, is_percent=True)):
        folder = tmp_path / str(budget is None)
        folder.mkdir()
        path = network(folder, num_values=32, density=0.3)
        files.append(build_coded(path, folder, budget)[0])
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, f"BUILD={sanitised}", f"COUNT={COUNT}",
         f"FILES={' '.join(map(str, files))}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{len(files) * COUNT} files damaged" in done.stdout
    assert "no fault" in done.stdout
