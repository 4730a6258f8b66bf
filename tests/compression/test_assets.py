"""The compressed networks in `assets` are what their page says."""

import json
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("zstandard", reason="the extra 'compression' is not installed")

from arenite.compression.coding import unpack  # noqa: E402

ASSETS = Path(__file__).parents[2] / "assets"
FACTS = json.loads((ASSETS / "digits.json").read_text())


def initialisers(file: Path) -> dict[str, bytes]:
    return {
        tensor.name: onnx.numpy_helper.to_array(tensor).tobytes()
        for tensor in onnx.load(file).graph.initializer
    }


@pytest.mark.parametrize("name", FACTS)
def test_the_container_in_assets_has_the_weights_of_the_compressed_model(name):
    container = (ASSETS / f"{name}.weights").read_bytes()
    weights = {label: each.tobytes() for label, each in unpack(container).items()}
    assert weights == initialisers(ASSETS / f"{name}-compressed.onnx")
    dense = initialisers(ASSETS / f"{name}.onnx")
    assert dense.keys() == weights.keys()
    assert FACTS[name]["container_bytes"] == len(container)
    assert FACTS[name]["dense_bytes"] == sum(map(len, dense.values())) >= 35 * len(container)


@pytest.mark.parametrize("name", FACTS)
@pytest.mark.parametrize(("suffix", "which"), [("", "dense"), ("-compressed", "compressed")])
def test_the_models_in_assets_are_as_good_as_stated(name, suffix, which):
    datasets = pytest.importorskip("sklearn.datasets", reason="the extra 'bench' is needed")
    from sklearn.model_selection import StratifiedKFold

    facts = FACTS[name]
    pixels, labels = datasets.load_digits(return_X_y=True)
    folds = StratifiedKFold(10, shuffle=True, random_state=facts["seed"])
    _, held_out = next(folds.split(pixels, labels))
    session = onnxruntime.InferenceSession(
        ASSETS / f"{name}{suffix}.onnx", providers=["CPUExecutionProvider"]
    )
    shape = session.get_inputs()[0].shape
    images = (pixels[held_out] / 16).astype(np.float32)
    named = [
        int(session.run(None, {"image": image.reshape(shape)})[0].argmax()) for image in images
    ]
    assert len(held_out) == facts["num_held_out"]
    assert np.count_nonzero(named != labels[held_out]) == facts[f"num_wrong_{which}"]


@pytest.mark.parametrize("name", FACTS)
def test_the_page_of_the_assets_states_the_same(name):
    facts = FACTS[name]
    (line,) = [
        line
        for line in (ASSETS / "README.md").read_text().splitlines()
        if line.startswith(f"| `{name}`")
    ]
    for fact in ("dense_bytes", "container_bytes", "num_wrong_dense", "num_wrong_compressed"):
        assert f" {facts[fact]:,} " in line
