"""Results that reach into their operands, in the stock TensorFlow Lite Micro interpreter.

Its reference kernels compute row by row, so the outputs stay the same bit for bit.
"""

from dataclasses import replace

import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from arenite.planner.programs.rules import SAFE_KINDS, AliasKind
from arenite.planner.rewrites.aliasing.overlap import permit_overlaps
from arenite.planner.rewrites.aliasing.rewrite import share
from arenite.runtime.targets.tflm import (
    Measurement,
    TflmModel,
    learn_scratch,
    measure_bytes,
    read_tflm_model,
)
from arenite.strategies import find
from support.shared_material import shared


def planned(model: TflmModel, kinds: tuple[AliasKind, ...], *, nudge: int = 0) -> Measurement:
    """Return what the interpreter measures, results `nudge` bytes further into operands."""
    sharing = replace(model, program=share(model.program, kinds))
    problem = sharing.problem(learn_scratch(model))
    offsets = list(sharing.offsets(problem, find("best")(problem)))
    for name, index in model.tensor_indexes.items():
        if sharing.program.root(name)[0].endswith("/overlap") and sharing.program.root(name)[1]:
            offsets[index] -= nudge
    return measure_bytes(
        model.path,
        model.file.with_plan(offsets),
        len(model.program.input_tensors),
        len(model.program.output_tensors),
    )


@pytest.mark.parametrize(
    ("name", "apart", "overlapping"),
    [
        ("kws_ref_model", 16_000, 9_856),
        ("micro_speech_quantized", 5_968, 4_192),
        ("person_detect", 55_296, 46_496),
        ("pretrainedResnet_quant", 49_152, 33_312),
    ],
)
def test_overlapping_results_lower_the_head_and_leave_the_outputs(name, apart, overlapping):
    model = read_tflm_model(shared(f"models/tflite/{name}.tflite"))
    without, with_it = planned(model, SAFE_KINDS), planned(model, tuple(AliasKind))
    assert (without.head, with_it.head) == (apart, overlapping)
    assert with_it.outputs == without.outputs


def test_a_plan_that_takes_the_leave_to_overlap_runs_with_the_same_outputs():
    model = read_tflm_model(shared("models/tflite/vww_96_int8.tflite"))
    safe = replace(model, program=share(model.program, SAFE_KINDS))
    problem = permit_overlaps(safe.program, safe.problem(learn_scratch(model)))
    data = model.file.with_plan(safe.offsets(problem, find("best")(problem)))
    overlapping = measure_bytes(model.path, data, len(model.program.input_tensors), 1)
    apart = planned(model, SAFE_KINDS)
    assert overlapping.head < apart.head == 55_296
    assert overlapping.outputs == apart.outputs


def test_results_that_reach_too_far_change_the_outputs():
    model = read_tflm_model(shared("models/tflite/pretrainedResnet_quant.tflite"))
    right, wrong = (planned(model, tuple(AliasKind), nudge=nudge) for nudge in (0, 64))
    assert right.outputs != wrong.outputs
