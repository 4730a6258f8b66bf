"""What TiGrIS states, asked budget by budget; a script of ours stands in for it."""

import sys

from bench.harness.engines import tigris_bytes

SCRIPT = """#!{python}
import json, sys
budget = int(sys.argv[3].removesuffix("K"))
if budget > 1000:
    sys.exit("too much")
verdict = "tiled" if budget >= 16 else "no"
print(json.dumps({{
    "fast": {{"verdict": verdict, "scheduled_peak_bytes": budget * 1000}},
    "slow": {{"fits": budget != 16, "peak_bytes": 1 if budget < 32 else 7}},
}}))
"""


def test_the_least_of_what_fits_is_taken(tmp_path):
    program = tmp_path / "tigris"
    program.write_text(SCRIPT.format(python=sys.executable))
    program.chmod(0o755)
    assert tigris_bytes(str(program), tmp_path / "model.tflite") == 24_001


def test_nothing_is_asked_of_nobody(tmp_path):
    assert tigris_bytes(None, tmp_path / "model.tflite") == 0


def test_what_is_refused_is_no_figure(tmp_path):
    program = tmp_path / "tigris"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    assert tigris_bytes(str(program), tmp_path / "model.tflite") == 0
