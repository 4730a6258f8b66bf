"""The cross-compiled runner under emulation against this machine's session.

`make test-arm` compiles it and says where; elsewhere these tests are skipped.
"""

import math
import os
import random
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

import arenite
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.planner import DType
from arenite.runtime import Session
from arenite.runtime.rewrites import Activations, Loading, WeightBudget
from arenite.strategies import find
from bench.zoo import NETWORKS, SMALL
from support import tflite_networks
from support.archives import unpack
from support.cache_rows import rounded, row_bytes
from support.coded_programs import build_coded, network
from support.command_models import EXCEEDS_A_CACHE
from support.edited_programs import edited_file
from support.one_step import Given, one_step
from support.shared_material import shared
from support.short_floats import shortened_model
from support.tiny_onnx import parse, save, with_random_integers, with_random_weights
from support.tiny_programs import accumulator, classifier


@dataclass(frozen=True)
class Machine:
    """A processor to emulate; `cortex-a72` has no dot product, `max` has everything."""

    arch: str
    triplet: str
    emulator: str
    processor: str


_ARM64 = ("arm64", "aarch64-linux-gnu", "qemu-aarch64-static")
_ARMHF = ("armhf", "arm-linux-gnueabihf", "qemu-arm-static")
MACHINES = [
    Machine(*_ARM64, "cortex-a72"),
    Machine(*_ARM64, "max"),
    Machine(*_ARMHF, "cortex-a7"),
    Machine(*_ARMHF, "max"),
]

SHARED_MODELS = [
    "hello_world_int8", "kws_ref_model", "pretrainedResnet", "pretrainedResnet_quant",
    "person_detect", "vww_96_float", "vww_96_int8", "mobilenet_v1_0.5_160_quant",
    "tf2_mobilenet_v2_1.0_224_ptq", "ultraface_rfb320",
]  # fmt: skip

TESTS = Path(__file__).parents[1]
RELATIVE_TOLERANCE = 1e-5
"""Of an output's largest number: sums run in another order, and a * b + c rounds once."""


@pytest.fixture(params=MACHINES, ids=lambda machine: f"{machine.arch}-{machine.processor}")
def machine(request) -> Machine:
    return request.param


def emulate(
    root: Path, machine: Machine, program: Path, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    library = root / machine.arch / "sysroot" / "usr" / "lib" / machine.triplet
    runner = root / machine.arch / "build" / "runtime" / "capi" / "arenite-run"
    command: list[str | Path] = [
        machine.emulator, "-cpu", machine.processor, "-L", f"/usr/{machine.triplet}",
        "-E", f"LD_LIBRARY_PATH={library}", runner, program, *arguments,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=False)


def emulated_outputs(
    root: Path, machine: Machine, program: Path, feeds: list[np.ndarray], folder: Path, *more: str
) -> bytes:
    """Return the outputs, one behind the other."""
    arguments: list[str | Path] = ["--output", folder / "out", *more]
    for index, array in enumerate(feeds):
        array.tofile(folder / f"in{index}")
        arguments += ["--input", folder / f"in{index}"]
    done = emulate(root, machine, program, *arguments)
    assert done.returncode == 0, done.stderr
    return (folder / "out").read_bytes()


def random_feeds(session: Session) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    feeds = {}
    for port in session.inputs:
        if port.dtype.kind == "f":
            feeds[port.name] = generator.standard_normal(port.shape).astype(port.dtype)
        else:
            limits = np.iinfo(port.dtype)
            feeds[port.name] = generator.integers(
                limits.min, limits.max, port.shape, port.dtype, endpoint=True
            )
    return feeds


def assert_agrees(root: Path, machine: Machine, program: Path, folder: Path) -> None:
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)
    raw = emulated_outputs(root, machine, program, list(feeds.values()), folder)
    label = f"{program.stem} on {machine.arch} {machine.processor}"
    assert_equal(label, expected, raw)


def assert_equal(
    label: str, expected: dict[str, np.ndarray], raw: bytes, tolerance: float = RELATIVE_TOLERANCE
) -> None:
    """Check outputs that lie one behind the other."""
    assert len(raw) == sum(array.nbytes for array in expected.values())
    start = 0
    for name, theirs in expected.items():
        ours = np.frombuffer(raw, theirs.dtype, theirs.size, start).reshape(theirs.shape)
        start += theirs.nbytes
        distance = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        if theirs.dtype.kind == "f":
            worst = distance.max() / np.abs(theirs).max()
            summary = f"worst {worst:.1e} of the largest"
            limit = tolerance
        else:
            worst = distance.max()
            summary = f"{np.count_nonzero(distance)} of {distance.size} differ, by {worst:.0f}"
            limit = 1
        print(f"{label}, {name}: {summary}")  # noqa: T201  # `make test-arm` shows it
        assert worst <= limit, summary


def built(path: Path, program: Path) -> Path:
    """Write the program of a model as `arenite build` does, in bands where these cost nothing."""
    build_program(path, program, reading=Reading(), strategy=find("greedy-by-size"))
    return program


@pytest.mark.parametrize("quantised", [False, True], ids=["float", "int8"])
def test_a_small_classifier_gives_this_machines_outputs(root, machine, tmp_path, quantised):
    assert_agrees(root, machine, classifier(tmp_path, quantised=quantised), tmp_path)


@pytest.mark.parametrize("budget", [None, 30])
def test_coded_and_streamed_weights_give_this_machines_outputs(root, machine, tmp_path, budget):
    path = network(tmp_path, num_values=32, density=0.3)
    limit = (
        None if budget is None else WeightBudget(budget, is_percent=True, loading=Loading.BESIDE)
    )
    program, _ = build_coded(path, tmp_path, limit)
    assert_agrees(root, machine, program, tmp_path)


def test_a_block_in_bands_gives_this_machines_outputs(root, machine, tmp_path):
    path = save(tmp_path, with_random_weights(parse(EXCEEDS_A_CACHE)))
    program = built(path, tmp_path / "block.arena")
    assert_agrees(root, machine, program, tmp_path)


OPERATORS = {
    "recurrent": "(float[3,1,13] x) => (y, z) <float[1,148,13] w, float[1,148,37] r, "
    "float[1,111,13] v, float[1,111,37] s> { y = LSTM<hidden_size=37>(x, w, r) "
    "z = GRU<hidden_size=37, linear_before_reset=1>(x, v, s) }",
    "depthwise": "(float[1,20,15,21] x) => (a, b, c) <float[20,1,3,3] w, float[20,1,5,5] v> "
    "{ a = Conv<group=20, pads=[1,1,1,1]>(x, w) b = Conv<group=20, strides=[2,2]>(x, w) "
    "c = Conv<group=20, pads=[2,1,2,2], strides=[2,2]>(x, v) }",
    "depthwise, three columns": "(float[1,40,9,13] x, float[1,40,3,1] y) => (a, b, c, d, e, f) "
    "<float[40,1,3,3] w, float[40] v> { a = Conv<group=40, pads=[1,1,1,1]>(x, w, v) "
    "b = Conv<group=40, pads=[0,0,1,1], strides=[2,2]>(x, w) g = Conv<group=40>(x, w, v) "
    "c = Relu(g) d = Conv<group=40, pads=[1,1,1,1], strides=[1,2]>(x, w) "
    "e = Conv<group=40, pads=[1,1,1,1]>(y, w) f = Conv<group=40, pads=[2,2,2,2]>(y, w) }",
    "one pixel": "(float[1,24,15,21] x) => (a, b) <float[40,24,1,1] w, float[44,12,1,1] v> "
    "{ a = Conv<strides=[2,3]>(x, w) b = Conv<group=2, strides=[1,2]>(x, v) }",
    "3 x 3": "(float[1,20,24,24] x) => (y) <float[20,20,3,3] w, float[21,20,1,1] v> "
    "{ a = Conv<pads=[1,1,1,1]>(x, w) y = Conv(a, v) }",
    "tiles of six": "(float[1,80,33,38] x) => (y) <float[33,80,3,3] w, float[33] b, "
    "float[240,33,1,1] v, float[8,240,1,1] u> { a = Conv<pads=[1,0,1,2]>(x, w, b) c = Relu(a) "
    "d = Conv(c, v) y = Conv(d, u) }",
    "tiles of other filters": "(float[1,48,14,17] x) => (y) <float[64,48,5,5] a, float[64] b, "
    "float[70,64,1,7] c, float[64,70,7,1] d, float[64,64,1,3] e, float[64,64,3,1] f, "
    "float[48,64,5,1] g, float[900,48,1,1] h, float[8,900,1,1] i> "
    "{ p = Conv<pads=[2,2,2,2]>(x, a, b) q = Conv<pads=[0,3,0,3]>(p, c) "
    "r = Conv<pads=[3,0,2,0]>(q, d) s = Conv<pads=[0,0,0,1]>(r, e) t = Add(s, s) u = Relu(t) "
    "v = Conv<pads=[1,0,1,0]>(u, f) w = Conv<pads=[0,0,4,0]>(v, g) z = Conv(w, h) "
    "y = Conv(z, i) }",
    "sums of weights": "(float[1,16,15,11] x, float[1,65,128] m) => (y, z) <float[320,16,1,1] a, "
    "float[320,320,1,1] b, float[64,320,1,1] c, float[64] d, float[96,64,3,3] e, "
    "float[64,160,1,1] f, float[160,320,1,1] g, float[128,640] h, float[640,96] i> "
    "{ p = Conv(x, a) q = Conv(p, b) r = Conv(q, c, d) s = Relu(r) k = Conv(q, g) t = Conv(k, f) "
    "u = Add(t, s) v = Relu(u) y = Conv<pads=[1,1,1,1], strides=[2,2]>(v, e) "
    "l = MatMul(m, h) z = MatMul(l, i) }",
    "products": "(float[2,27,22] x, float[2,22,19] y) => (z, t) { z = MatMul(x, y) "
    "a = Transpose<perm=[0,2,1]>(x) b = Relu(x) t = MatMul(a, b) }",
}


@pytest.mark.parametrize("text", OPERATORS.values(), ids=OPERATORS)
def test_kernels_give_this_machines_outputs(root, machine, tmp_path, text):
    path = save(tmp_path, with_random_weights(parse(text)))
    assert_agrees(root, machine, built(path, tmp_path / "one.arena"), tmp_path)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_weights_of_16_bits_give_this_machines_outputs(root, machine, tmp_path, kind):
    text = """(float[3,90] x, float[20,90] y) => (a, b, c)
        <float[90,200] w, float[90,1100] v, float[300,40] t> { a = MatMul(x, w) b = MatMul(y, v)
        i = ArgMax<axis=1, keepdims=0>(y) c = Gather(t, i) }"""
    path = save(tmp_path, shortened_model(text, kind))
    made = build_program(
        path, tmp_path / "short.arena", reading=Reading(), strategy=find("greedy-by-size")
    )
    types = {made.program.tensors[name].dtype.label for name in made.program.constants}
    assert types == {kind}
    assert_agrees(root, machine, tmp_path / "short.arena", tmp_path)


def test_rows_of_a_cache_give_this_machines_outputs(root, machine, tmp_path):
    draw = np.random.default_rng(0)
    rows = draw.normal(0, 3, (1, 70, 2 * 48)).astype(np.float32)
    kept = Given((1, 70, 2 * row_bytes(48)), "int8")
    made = tmp_path / "rows.arena"
    made.write_bytes(b"".join(one_step("CacheRows", {"width": 48}, [Given(rows.shape)], [kept])))
    raw = emulated_outputs(root, machine, made, [rows], tmp_path)
    stored = rounded(rows.reshape(70, 2, 48))
    assert raw == stored.tobytes()
    reading = tmp_path / "attention.arena"
    for queries in (1, 9):  # one by one, and side by side
        asked = draw.normal(0, 1, (1, queries, 4 * 48)).astype(np.float32)
        kernel = {"heads": 4, "key_heads": 2, "scale": 0.2, "causal": True}
        step = one_step(
            "Attention", kernel, [Given(asked.shape), kept, kept], [Given(asked.shape)]
        )
        reading.write_bytes(b"".join(step))
        feeds = [asked, stored, stored]
        with Session(reading) as session:
            named = dict(zip(("i0", "i1", "i2"), feeds, strict=True))
            named |= {name: named[name].reshape(kept.shape) for name in ("i1", "i2")}
            expected = session.run(named)
        raw = emulated_outputs(root, machine, reading, feeds, tmp_path)
        assert_equal(f"{queries} queries on {machine.processor}", expected, raw)


@pytest.mark.parametrize("name", ["tiles of six", "tiles of other filters", "sums of weights"])
def test_working_memory_of_threads_gives_the_same_bits(root, tmp_path, name):
    path = save(tmp_path, with_random_weights(parse(OPERATORS[name])))
    program = tmp_path / "sums.arena"
    made = build_program(path, program, reading=Reading(), strategy=find("best"))
    assert any(getattr(step.operator, "tile_scratch", 0) for step in made.program.steps)
    with Session(program) as session:
        given = list(random_feeds(session).values())
    one, two = (
        emulated_outputs(root, MACHINES[0], program, given, tmp_path, "--threads", threads)
        for threads in ("1", "2")
    )
    assert one == two


HALVES = {
    "windows": "(float[1,20,17,23] x) => (p, q, r, s, t) <float[37,20,3,3] a, float[37] b, "
    "float[24,37,3,3] c, float[40,24,5,5] d, float[20,40,3,3] e, float[26,20,1,3] f> "
    "{ u = Relu(x) v = Conv<pads=[1,1,1,1]>(u, a, b) w = Relu(v) "
    "y = Conv<pads=[1,1,1,1], strides=[2,2]>(w, c) p = Relu(y) z = Conv<pads=[2,2,2,2]>(y, d) "
    "q = Relu(z) k = Conv<pads=[2,2,2,2], dilations=[2,2]>(z, e) r = Relu(k) "
    "l = Conv<pads=[0,2,0,1]>(k, f) s = Relu(l) m = Add(k, k) t = Relu(m) }",
    "one pixel": "(float[1,24,15,21] x) => (y, z) <float[300,24,1,1] a, float[44,300,1,1] b, "
    "float[300,300,1,1] c> { u = Relu(x) v = Conv<strides=[2,3]>(u, a) w = Relu(v) "
    "p = Conv(w, c) q = Add(p, w) y = Conv(q, b) z = Relu(q) }",
    "depthwise": "(float[1,20,15,21] x) => (p, q, r, s, t) <float[20,1,3,3] a, float[20] b, "
    "float[20,1,5,5] c, float[20,1,7,3] d, float[20,20,1,1] e> { u = Conv(x, e) "
    "v = Conv<group=20, pads=[1,1,1,1]>(u, a, b) g = Relu(v) p = Conv(g, e) "
    "w = Conv<group=20, pads=[1,1,1,1], strides=[2,2]>(u, a) q = Conv(w, e) "
    "y = Conv<group=20, pads=[2,1,2,2], strides=[2,2]>(u, c) r = Conv(y, e) "
    "z = Conv<group=20, pads=[2,2,2,2]>(u, c) s = Conv(z, e) "
    "k = Conv<group=20, pads=[3,2,3,2], dilations=[1,2]>(u, d) t = Conv(k, e) }",
    "narrow maps": "(float[1,24,5,2] x) => (y, z) <float[24,1,5,5] a, float[24,24,3,3] b, "
    "float[24,24,1,1] e> { u = Conv(x, e) v = Conv<group=24, pads=[2,2,2,2]>(u, a) w = Add(v, u) "
    "p = Conv<pads=[1,1,1,1]>(w, b) y = Relu(p) q = Conv<pads=[4,4,4,4]>(w, b) z = Relu(q) }",
    "products": "(float[1,33,300] x) => (y, z) <float[300,90] a, float[90,7] b, float[90] c> "
    "{ u = Relu(x) v = MatMul(u, a) w = Add(v, c) p = Relu(w) y = MatMul(p, b) "
    "q = ReduceMean<axes=[1], keepdims=0>(p) z = MatMul(q, b) }",
}
HALF_ERROR = 4e-3
"""Of an output's largest number: weights, results and sums of up to 64 products have 16 bits."""
DEEP_ERROR = 1e-2
"""The same of 53 layers."""
HALF_MACHINES = [
    Machine(*_ARM64, "cortex-a53"),
    Machine(*_ARM64, "cortex-a72"),
    Machine(*_ARM64, "neoverse-n1"),
    Machine(*_ARMHF, "cortex-a7"),
]
"""The third one has the arithmetic of 16-bit floats, the others convert them."""


def with_small_weights(text: str) -> onnx.ModelProto:
    """Return a network whose results stay as large as its inputs."""
    proto = with_random_weights(parse(text))
    for tensor in proto.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        rows = array.shape[0] if text is HALVES["products"] else array[0].size
        tensor.CopyFrom(onnx.numpy_helper.from_array(array / np.float32(rows**0.5), tensor.name))
    return proto


def outputs_of_halves(root: Path, path: Path, folder: Path, tolerance: float) -> list[bytes]:
    """Return the outputs on each machine after checking them against 32-bit floats."""
    exact, program = built(path, folder / "exact.arena"), folder / "halves.arena"
    reading = Reading(activations=Activations.FP16)
    made = build_program(path, program, reading=reading, strategy=find("greedy-by-size"))
    assert any(each.dtype is DType.FLOAT16 for each in made.program.tensors.values())
    with Session(exact) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)
    given = list(feeds.values())
    outputs = [
        emulated_outputs(root, machine, program, given, folder) for machine in HALF_MACHINES
    ]
    for machine, raw in zip(HALF_MACHINES, outputs, strict=True):
        label = f"16 bits of {path.stem} on {machine.processor}"
        assert_equal(label, expected, raw, tolerance)
    return outputs


@pytest.mark.parametrize("text", HALVES.values(), ids=HALVES)
def test_halves_are_near_floats_on_every_machine(root, tmp_path, text):
    path = save(tmp_path, with_small_weights(text))
    *converted, computed, _ = outputs_of_halves(root, path, tmp_path, HALF_ERROR)
    assert converted[0] == converted[1] != computed


def test_a_network_of_halves_is_near_floats_on_every_machine(root, tmp_path):
    onnx.save(SMALL["mobilenet-v2-0.35-144"](), path := tmp_path / "mobilenet-v2.onnx")
    outputs_of_halves(root, path, tmp_path, DEEP_ERROR)


def test_halves_are_the_same_in_bands_and_on_threads(root, tmp_path):
    path = save(tmp_path, with_small_weights(HALVES["windows"]))
    whole, bands = tmp_path / "whole.arena", tmp_path / "bands.arena"
    reading = Reading(activations=Activations.FP16)
    build_program(path, whole, reading=reading, strategy=find("greedy-by-size"))
    arenite.fit(path, "95%", activations="fp16").save(bands)
    with Session(whole) as session:
        given = list(random_feeds(session).values())
    machine = HALF_MACHINES[2]
    expected = emulated_outputs(root, machine, whole, given, tmp_path)
    for program, threads in ((bands, 1), (whole, 3), (bands, 2)):
        done = emulated_outputs(root, machine, program, given, tmp_path, "--threads", str(threads))
        assert done == expected


def test_a_state_is_set_up(root, machine, tmp_path):
    assert_agrees(root, machine, accumulator(tmp_path), tmp_path)


def test_an_arena_beyond_32_bits_is_refused(root, tmp_path):
    program = classifier(tmp_path, quantised=True)
    program.write_bytes(
        edited_file(program, lambda file: file["memories"][0].update(size=(1 << 32) + 4096))
    )
    done = emulate(root, MACHINES[-1], program)
    assert done.returncode == 1
    assert "beyond this machine" in done.stderr


def random_convolutions(seed: int, count: int = 12) -> onnx.ModelProto:
    """Return 8-bit convolutions of one image, dense and depthwise, with all bytes as weights."""
    draw = random.Random(seed)
    numbers = np.random.default_rng(seed)
    kind = draw.choice([np.uint8, np.int8])
    channels = draw.choice([3, 8, 12, 16, 24, 40])
    sides = [draw.randint(4, 13), draw.randint(3, 13)]
    graph = onnx.helper.make_graph([], "convolutions", [], [])
    shape = [1, channels, *sides]
    tensor_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph.input.append(onnx.helper.make_tensor_value_info("x", tensor_type, shape))

    def constant(name: str, array: np.ndarray) -> str:
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return name

    limits = np.iinfo(kind)
    constant("xs", np.array(1, np.float32))
    constant("xz", np.array(draw.randint(limits.min, limits.max), kind))
    for index in range(count):
        depthwise = draw.random() < 0.6
        outputs = channels if depthwise else draw.randint(1, 40)
        kernel = [draw.choice([1, 2, 3, 3, 3, 5]) for _ in range(2)]
        dilations = [draw.choice([1, 1, 2]) for _ in range(2)]
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        pads = [draw.randint(0, extent - 1) for extent in extents * 2]
        if any(
            side + pads[axis] + pads[axis + 2] < extents[axis] for axis, side in enumerate(sides)
        ):
            pads = [extent - 1 for extent in extents * 2]
        per_channel = draw.random() < 0.5
        weights = numbers.integers(
            -128, 127, [outputs, 1 if depthwise else channels, *kernel], np.int8, endpoint=True
        )
        if draw.random() < 0.3:
            weights[:] = -128
        scale = np.float32(0.4 / (128 * 128 * math.sqrt(weights[0].size)))
        scales = scale * numbers.uniform(0.5, 2, outputs if per_channel else 1).astype(np.float32)
        inputs = [
            "x",
            "xs",
            "xz",
            constant(f"w{index}", weights),
            constant(f"ws{index}", scales if per_channel else scales[0]),
            constant(f"wz{index}", np.zeros(scales.shape if per_channel else (), np.int8)),
            constant(f"ys{index}", np.float32(1 / 128)),
            constant(f"yz{index}", np.array(draw.randint(limits.min, limits.max), kind)),
        ]
        if draw.random() < 0.7:
            bias = numbers.integers(-(1 << 12), 1 << 12, outputs, np.int32)
            inputs.append(constant(f"b{index}", bias))
        graph.node.append(
            onnx.helper.make_node(
                "QLinearConv", inputs, [f"y{index}"], kernel_shape=kernel, pads=pads,
                strides=[draw.choice([1, 2, 3]) for _ in range(2)], dilations=dilations,
                group=channels if depthwise else 1,
            )
        )  # fmt: skip
        graph.output.append(onnx.helper.make_tensor_value_info(f"y{index}", tensor_type, None))
    opset = onnx.helper.make_opsetid("", 13)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)


@pytest.mark.parametrize("seed", range(8))
def test_8_bit_convolutions_give_this_machines_bits(root, machine, tmp_path, seed):
    path = tmp_path / "convolutions.onnx"
    onnx.save(random_convolutions(seed), path)
    program = built(path, tmp_path / "convolutions.arena")
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = b"".join(array.tobytes() for array in session.run(feeds).values())
    assert emulated_outputs(root, machine, program, list(feeds.values()), tmp_path) == expected


PRODUCTS_OF_INTEGERS = """(float[37,70] x, int8[5,64] s, int8[2,3000] l, uint8[1,6,9,11] i) =>
(uint8[37,70] q, float t, uint8 z, int32[37,33] a, int32[5,40] b, int32[2,5] d, int32[1,9,9,11] c)
<int8[70,33] w, int8[33] v, uint8[64,40] u, int8[3000,5] k, uint8[9,2,3,3] f, int8 m = {-3},
uint8 n = {130}, uint8 o = {7}> {q, t, z = DynamicQuantizeLinear(x) a = MatMulInteger(q, w, z, v)
b = MatMulInteger(s, u, m, n) d = MatMulInteger(l, k, m)
c = ConvInteger<group=3, pads=[1,1,1,1]>(i, f, o, n)}"""


def test_products_of_integers_give_this_machines_bits(root, machine, tmp_path):
    path = save(tmp_path, with_random_integers(parse(PRODUCTS_OF_INTEGERS)))
    program = built(path, tmp_path / "dynamic.arena")
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = b"".join(array.tobytes() for array in session.run(feeds).values())
    assert emulated_outputs(root, machine, program, list(feeds.values()), tmp_path) == expected


@pytest.mark.parametrize("name", SHARED_MODELS)
def test_a_trained_model_gives_this_machines_outputs(root, machine, tmp_path_factory, name):
    path = shared(f"models/tflite/{name}.tflite")
    folder = tmp_path_factory.mktemp(name)
    assert_agrees(root, machine, built(path, folder / f"{name}.arena"), folder)


RUN_IN_PYTHON = """
import sys
import numpy as np
import arenite
from arenite.runtime import _core, _schema
from arenite.runtime.targets.onnxruntime import _allocator
from arenite.strategies import _core as searches
modules = _core, _schema, _allocator, searches
assert all(each.__file__.startswith(sys.argv[4]) for each in modules), modules
with np.load(sys.argv[2]) as feeds, arenite.Session(sys.argv[1]) as session:
    outputs = session.run(dict(feeds))
with open(sys.argv[3], "wb") as out:
    out.writelines(array.tobytes() for array in outputs.values())
"""


def run_by_the_wheel(root: Path, machine: Machine, *arguments: str | Path) -> None:
    """Run Debian's Python of an architecture, where the wheel is installed."""
    done = subprocess.run(
        [root / machine.arch / "python", *arguments],
        env={
            "PATH": os.environ["PATH"], "QEMU_CPU": machine.processor,
            "PYTHONPATH": f"{root / machine.arch / 'site'}:{TESTS}",
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


boards = pytest.mark.parametrize(
    "machine", [MACHINES[0], MACHINES[2]], ids=["arm64", "armhf"], indirect=True
)


@boards
@pytest.mark.parametrize("name", ["network.onnx", "network.tflite"])
def test_a_wheel_gives_this_machines_outputs(root, machine, tmp_path, name):
    if name == "network.onnx":
        onnx.save(NETWORKS["mobilenet-v1-0.25-96"](), tmp_path / name)
    else:
        (tmp_path / name).write_bytes(tflite_networks.detector())
    program = built(tmp_path / name, tmp_path / "network.arena")
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)
    np.savez(tmp_path / "feeds.npz", **feeds)
    run_by_the_wheel(
        root, machine, "-c", RUN_IN_PYTHON, program, tmp_path / "feeds.npz", tmp_path / "out",
        root / machine.arch / "site",
    )  # fmt: skip
    assert_equal(f"{name} on {machine.arch}", expected, (tmp_path / "out").read_bytes())
    assert_agrees(root, machine, program, tmp_path)


@boards
def test_a_wheel_holds_what_it_must(root, machine):
    run_by_the_wheel(root, machine, TESTS / "installed_wheel.py")


def test_the_command_of_a_wheel_runs_a_program(root, tmp_path):
    program = classifier(tmp_path, quantised=True)
    run_by_the_wheel(root, MACHINES[0], "-m", "arenite", "run", program)


NO_COMPILER = {"CC": "/absent/cc", "CXX": "/absent/c++"}


@boards
def test_the_sdist_takes_the_modules_of_its_wheel_where_no_compiler_is(root, machine, tmp_path):
    (sdist,) = (root / "wheels").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        unpack(archive, tmp_path)
    source = tmp_path / sdist.name.removesuffix(".tar.gz")
    python = root / machine.arch / "python"
    suffix = "import sysconfig; print(sysconfig.get_config_var('SOABI'))"
    soabi = subprocess.run([python, "-c", suffix], capture_output=True, text=True, check=True)
    for arguments in (
        ["-S", source, "-B", tmp_path / "build", "-DSKBUILD=2", f"-DPython_EXECUTABLE={python}",
         f"-DSKBUILD_SOABI={soabi.stdout.strip()}"],
        ["--install", tmp_path / "build", "--prefix", tmp_path / "installed"],
    ):  # fmt: skip
        subprocess.run(["cmake", *arguments], check=True, env=os.environ | NO_COMPILER)
    installed = {path.name for path in (tmp_path / "installed").rglob("*.so")}
    assert {f"{name}.{soabi.stdout.strip()}.so" for name in ("_core", "_schema")} <= installed
