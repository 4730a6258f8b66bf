"""The SqueezeNet that the authors of Deep Compression published, coded and run."""

import numpy as np
import onnx
import pytest

from arenite.compression import pack, unpack
from arenite.runtime import Session
from arenite.runtime.rewrites import WeightBudget
from bench.deep_compression import network, read
from support.coded_programs import build_coded
from support.running import reference_outputs
from support.shared_material import shared

MEAN = (104, 117, 123)
"""Of blue, green and red, as the network was trained."""


@pytest.fixture(scope="module")
def tensors():
    return read(shared("models/deep_compression/squeezenet_v1.0_deep_compression.net"))


@pytest.fixture(scope="module")
def path(tensors, tmp_path_factory):
    path = tmp_path_factory.mktemp("squeezenet") / "squeezenet.onnx"
    onnx.save(network(tensors), path)
    return path


def image_of(name):
    images = pytest.importorskip("PIL.Image", reason="the extra 'images' is not installed")
    with images.open(shared(f"models/images/{name}")) as file:
        pixels = np.asarray(file.convert("RGB").resize((227, 227)), np.float32)
    return np.ascontiguousarray((pixels[:, :, ::-1] - np.float32(MEAN)).transpose(2, 0, 1)[None])


def test_its_container_has_at_most_545000_bytes_and_loses_no_bit(tensors):
    packed = pack(tensors)
    assert len(packed) <= 545_000
    restored = unpack(packed)
    assert all(restored[name].tobytes() == each.tobytes() for name, each in tensors.items())


@pytest.mark.parametrize("budget", [None, WeightBudget(15, is_percent=True)])
@pytest.mark.parametrize(
    ("picture", "label"), [("cat.bmp", "Egyptian cat"), ("grace_hopper.bmp", "bow tie")]
)
def test_its_coded_program_sees_what_onnxruntime_sees(path, budget, picture, label, tmp_path):
    program, compiled = build_coded(path, tmp_path, budget)
    assert program.stat().st_size < 680_000
    feeds = {"image": image_of(picture)}
    with Session(program) as session:
        found = session.run(feeds)["classes"]
    expected = reference_outputs(path, feeds)["classes"]
    assert np.abs(found - expected).max() < 1e-6
    labels = shared("models/images/imagenet_labels.txt").read_text().splitlines()[-1000:]
    assert labels[int(found.argmax())].startswith(label)
    assert budget is None or compiled.streaming.resident < 0.15 * 4_993_696
