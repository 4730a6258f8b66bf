"""The example in docs/examples/c, built as its reader builds it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import Session
from arenite.runtime.program import write_assembly
from arenite.strategies import find
from support.c_library import CHECKOUT, environment, install, run
from support.shared_material import shared
from support.tiny_programs import classifier


@pytest.fixture(scope="session")
def prefix() -> Path:
    return install()


@pytest.fixture(scope="session")
def classify(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(CHECKOUT / "docs" / "examples" / "c", folder, dirs_exist_ok=True)
    run(["make", "-C", folder], env=environment(prefix) | {"CFLAGS": "-Werror"})

    def call(*arguments: object) -> list[list[str]]:
        command = [folder / "classify", *map(str, arguments)]
        printed = run(command, env=environment(prefix)).stdout
        return [line.split(maxsplit=2) for line in printed.splitlines()]

    return call


@pytest.fixture
def picture(tmp_path) -> tuple[np.ndarray, dict[str, Path]]:
    """Return an image of 20 x 30 pixels, and its files by format."""
    pixels = np.random.default_rng(2).integers(0, 256, (20, 30, 3), np.uint8)
    ppm = tmp_path / "image.ppm"
    ppm.write_bytes(b"P6\n30 20\n255\n" + pixels.tobytes())
    rows = b"".join(row[:, ::-1].tobytes() + bytes(2) for row in pixels[::-1])
    head = np.array([54 + len(rows), 0, 54, 40, 30, 20, 24 << 16 | 1] + [0] * 6, "<u4")
    bmp = tmp_path / "image.bmp"
    bmp.write_bytes(b"BM" + head.tobytes() + rows)
    return pixels, {"ppm": ppm, "bmp": bmp}


@pytest.mark.parametrize("kind", ["ppm", "bmp"])
@pytest.mark.parametrize("quantised", [False, True])
def test_the_top_classes_are_those_of_python(classify, picture, tmp_path, kind, quantised):
    pixels, files = picture
    path = classifier(tmp_path, quantised=quantised)
    rows, columns = np.arange(16) * 20 // 16, np.arange(16) * 30 // 16
    image = (pixels[rows][:, columns].astype(np.float32) - 127.5) / 127.5
    image = image.transpose(2, 0, 1)[None]
    if quantised:
        image = np.clip(np.round(image / 0.02) + 5, -128, 127).astype(np.int8)
    scores = Session(path).run({"image": image})["classes"].ravel().astype(np.float64)
    if quantised:
        scores = (scores + 128) / 256
    printed = classify(path, files[kind])
    assert int(printed[0][0]) == scores.argmax()
    np.testing.assert_allclose(
        [float(line[1]) for line in printed], np.sort(scores)[::-1][:5], atol=1e-3
    )


def test_cmake_finds_the_package(prefix, tmp_path):
    source = CHECKOUT / "docs" / "examples" / "c"
    run(["cmake", "-S", source, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}"])
    run(["cmake", "--build", tmp_path])
    assert (tmp_path / "classify").exists()


@pytest.mark.parametrize("name", ["cat", "grace_hopper"])
def test_a_trained_model_knows_the_image(classify, tmp_path, name):
    path = shared("models/tflite/tf2_mobilenet_v2_1.0_224_ptq.tflite")
    program = tmp_path / "model.arena"
    compiled = compile_model(path)
    plan = find("greedy-by-size")(compiled.source.problem)
    write_assembly(program, compiled.assemble(plan))
    image, labels = (
        shared(f"models/images/{name}.bmp"),
        shared("models/images/imagenet_labels.txt"),
    )
    top = classify(program, image, labels)
    expected = {"cat": ("cat", "tabby", "lynx"), "grace_hopper": ("uniform",)}[name]
    assert any(word in line[2] for line in top for word in expected)
