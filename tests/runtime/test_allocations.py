"""A warm run asks nobody for memory: counted where memory is handed out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from arenite.pipeline.targets.compiling import lower_model
from arenite.planner.programs.costs import LEAST
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import Loading, WeightBudget
from arenite.strategies import find_policy
from bench.harness import allocations
from support.coded_programs import KINDS, build_coded, network
from support.detectors import DETECTORS
from support.ranged_programs import NETWORKS, range_of
from support.running import build
from support.tflite_layers import detector, integer_lstm, spectrum
from support.tiny_onnx import parse, save, with_random_weights
from support.trading import CARRIED, assembled, traded

RESIZING = """
import ctypes, json, sys
from arenite.runtime import Session
counter = ctypes.CDLL(sys.argv[1])
counter.stop.restype = ctypes.c_long
session = Session(sys.argv[2], threads=int(sys.argv[3]))
native = session._native
(dimension,) = session.dimensions
count = control = 0
for size in [*range(dimension.low, dimension.high + 1, dimension.step), dimension.low]:
    sizes = [size]
    for before in ([dimension.high], sizes):
        native.resize(before)
        counter.start()
        native.resize(sizes)
        if before is sizes:  # the call alone, which makes a list of the core's
            control += counter.stop()
        else:
            count += counter.stop()
    session.invoke()
json.dump({"heap": count, "control": control}, sys.stdout)
"""
COUNTING = """
import ctypes, json, sys
import numpy as np
from arenite.runtime import Session
counter = ctypes.CDLL(sys.argv[1])
counter.stop.restype = ctypes.c_long
session = Session(sys.argv[2], threads=int(sys.argv[3]))
native, generator = session._native, np.random.default_rng(0)
count, found = 0, set()
for run in range(40):
    for port in session.inputs:
        port.view[...] = generator.uniform(0, 1 if run % 4 else 0.1, port.shape)
    counter.start()
    native.run(0, native.num_turns)
    count += counter.stop()
    found.add(tuple(native.sizes()))
json.dump({"heap": count, "found": len(found)}, sys.stdout)
"""
SCRIPT = """
import ctypes, json, sys
import numpy as np
from arenite.runtime import Session
counter = ctypes.CDLL(sys.argv[1])
counter.stop.restype = ctypes.c_long
session = Session(sys.argv[2], threads=int(sys.argv[3]))
feeds = {port.name: np.ones(port.shape, port.dtype) for port in session.inputs}
session.run(feeds)
counter.start()
for _ in range(20):
    session.invoke()
count = counter.stop()
counter.start()
bytearray(1 << 20)
json.dump({"heap": count, "control": counter.stop()}, sys.stdout)
"""
NETWORK = """(float[1,6,16,16] x, int64[3] i) => (y, z)
<float[12,6,3,3] w, float[12] b, float[12,1,3,3] d, float[6,12,1,1] p, float[384,10] f,
int64[5] s = {1,2,3,16,16}, int64[4] u = {1,6,16,16}, float[4] k = {1,1,2,2}>
{
  a = Conv<pads=[1,1,1,1]>(x, w, b) r = Relu(a)
  c = Conv<group=12, pads=[1,1,1,1]>(r, d) h = HardSwish(c) e = Conv(h, p)
  m = Add(e, x) g = Reshape(m, s) t = Transpose<perm=[0,2,1,3,4]>(g) v = Reshape(t, u)
  q = MaxPool<kernel_shape=[2,2], strides=[2,2]>(v) j = Concat<axis=1>(q, q)
  n = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">
      (q, , k)
  o = AveragePool<kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1], count_include_pad=1>(q)
  l = MatMul(n, n) ab = LRN<size=3>(q) ac = Tanh(ab) ad = Flatten(ac) ae = Gemm(ad, f)
  y = Softmax<axis=-1>(ae) af = ReduceMax<axes=[1]>(l) z = Gather<axis=3>(af, i)
}"""


@pytest.fixture(scope="module")
def counter(tmp_path_factory) -> Path:
    """A library that counts what is asked of the heap, to be loaded before all others."""
    return allocations.counter(tmp_path_factory.mktemp("counter"))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_warm_run_allocates_nothing(counter, tmp_path, threads):
    model = save(tmp_path, with_random_weights(parse(NETWORK)))
    counted = count(counter, build(model, tmp_path), threads)
    assert counted["heap"] == 0
    assert counted["control"] > 0  # the counter is in force


LAYERS = {
    "detection": lambda: detector({})[0],
    "detection by class": lambda: detector({"use_regular_nms": True})[0],
    "lstm of integers": integer_lstm,
    "spectrum": lambda: spectrum((2, 5, 11), 8, 32),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_with_working_memory_allocate_nothing(counter, tmp_path, layer):
    path = tmp_path / "layer.tflite"
    path.write_bytes(LAYERS[layer]())
    counted = count(counter, build(path, tmp_path), 1)
    assert counted["heap"] == 0
    assert counted["control"] > 0


@pytest.mark.parametrize("name", ["in another", "in branches", "layers of bytes"])
def test_the_rounds_of_a_loop_allocate_nothing(counter, tmp_path, name):
    pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
    from support.tiny_loops import LOOPS

    path = tmp_path / "loop.tflite"
    path.write_bytes(LOOPS[name].model)
    assert count(counter, build(path, tmp_path), 1)["heap"] == 0


def test_moving_tensors_allocates_nothing(counter, tmp_path):
    lowered = lower_model(save(tmp_path, with_random_weights(parse(CARRIED))))
    found = traded(lowered, find_policy("offload-prefetch"), LEAST)
    assert found.spilled
    path = tmp_path / "moving.arena"
    write_assembly(path, assembled(lowered, found))
    counted = count(counter, path, 1)
    assert counted["heap"] == 0
    assert counted["control"] > 0


def test_loading_weights_beside_the_computation_allocates_nothing(counter, tmp_path):
    model = network(tmp_path, **KINDS["shared"])
    path, compiled = build_coded(
        model, tmp_path, WeightBudget(30, is_percent=True, loading=Loading.BESIDE)
    )
    assert compiled.streaming.at_once == 2
    counted = count(counter, path, 1)
    assert counted["heap"] == 0
    assert counted["control"] > 0


@pytest.mark.parametrize("network", NETWORKS)
def test_other_sizes_allocate_nothing(counter, tmp_path, network):
    path = tmp_path / "ranged.arena"
    write_assembly(path, range_of(tmp_path, network)[1])
    counted = count(counter, path, 1, RESIZING)
    assert counted["heap"] == counted["control"] > 0


@pytest.mark.parametrize("text", DETECTORS)
def test_sizes_that_a_run_counts_allocate_nothing(counter, tmp_path, text):
    counted = count(counter, build(save(tmp_path, parse(text)), tmp_path), 1, COUNTING)
    assert counted["heap"] == 0
    assert counted["found"] > 1


def count(counter, program, threads, script=SCRIPT):
    """Return how often memory is asked for in 20 runs of a program, or in what a script does."""
    process = subprocess.run(
        [sys.executable, "-c", script, counter, program, str(threads)],
        env={"LD_PRELOAD": str(counter), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(process.stdout)
