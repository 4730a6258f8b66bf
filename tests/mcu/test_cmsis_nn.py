"""Models for CMSIS-NN on emulated boards, of each kind that it has kernels for.

They run where `ARENITE_CMSIS_NN` names your own: its `Include`, and in `lib` the libraries
`cortex-m3.a`, `cortex-m4.a` and `cortex-m55.a`.
"""

import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from bench.boards.board import LARGE_M3, board
from bench.boards.program import BuildError, build, exported, footprint, with_cmsis_nn
from bench.boards.run import joined, random_inputs, run, tflm_outputs
from support import tflite_networks as networks
from support.command import main
from support.exported_c import own, own_library
from support.shared_material import shared

RUNS = 3
BOARDS = [(LARGE_M3, "none"), (board("mps2-an386"), "dsp"), (board("mps3-an547"), "mve")]
NETWORKS = {
    "classifier": networks.classifier, "detector": networks.detector, "keyword": networks.keyword,
    "autoencoder": networks.autoencoder,
}  # fmt: skip
TRAINED = ("vww_96_int8", "kws_ref_model", "pretrainedResnet_quant", "person_detect")


@pytest.mark.parametrize(("target", "extension"), BOARDS, ids=lambda each: str(each)[:16])
@pytest.mark.parametrize("name", [*NETWORKS, *TRAINED])
def test_a_model_gives_the_interpreters_bits(name, target, extension, tmp_path):
    own_library(target.processor.lower())
    model = tmp_path / f"{name}.tflite"
    if name in NETWORKS:
        model.write_bytes(NETWORKS[name]())
    else:
        model = shared(f"models/tflite/{name}.tflite")
    folder = tmp_path / "c"
    assert main(["export", str(model), "--to", "c", "--kernels", "cmsis-nn", "--extension",
                 extension, "-o", str(folder)]) == 0  # fmt: skip
    inputs = random_inputs(model, RUNS)
    program = build(target, with_cmsis_nn(exported(folder), target, own()), tmp_path / "board")
    report = run(program, joined(inputs))
    report.require_sound()
    assert report.outputs == joined(tflm_outputs(model, inputs))
    assert footprint(program).variables == 0


def test_a_processor_without_a_library_is_refused(tmp_path):
    with pytest.raises(BuildError, match=r"there is no .*cortex-m3\.a"):
        with_cmsis_nn(None, LARGE_M3, tmp_path)
