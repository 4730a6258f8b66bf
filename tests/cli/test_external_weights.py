"""Weights beside a model that are not there: one line that names the file expected."""

import onnx
import pytest

from support.tiny_onnx import parse, with_random_weights

NETWORK = "(float[1,3,16,16] x) => (y) <float[32,3,3,3] w> {y = Conv(x, w)}"


def missing(weights):
    weights.unlink()


def truncated(weights):
    weights.write_bytes(weights.read_bytes()[:100])


def linked(weights):
    elsewhere = weights.parent.with_name("elsewhere")
    weights.rename(elsewhere)
    weights.symlink_to(elsewhere)


FAULTS = {"missing": missing, "truncated": truncated, "linked": linked}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model" / "model.onnx"
    path.parent.mkdir()
    onnx.save(
        with_random_weights(parse(NETWORK)), path, save_as_external_data=True,
        location="weights.data", size_threshold=0,
    )  # fmt: skip
    return path


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "command",
    ["plan", "inspect", "bench", "run", "build -o o.arena", "compress -o o.onnx",
     "compress -o o.arena", "export --to onnxruntime -o o.onnx", "plan --target onnxruntime"],
)  # fmt: skip
def test_the_file_expected_is_named(model, refused, fault, command, monkeypatch):
    if "onnxruntime" in command:
        pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    if fault == "linked" and command.startswith("plan --target"):
        pytest.skip("ONNX Runtime, which reads the model there, follows links")
    monkeypatch.chdir(model.parent)
    FAULTS[fault](model.with_name("weights.data"))
    word, *rest = command.split()
    said = refused(word, model, *rest)
    assert "weights.data" in said
    assert {"missing": "missing", "truncated": "truncated", "linked": "a link"}[fault] in said
    assert not list(model.parent.glob("o.*"))


@pytest.fixture
def cached(model, tmp_path):
    """The same model as a cache of Hugging Face holds it: links to the files of a repository."""
    repository = tmp_path / "models--some--network"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / "0123" / "onnx"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, name in enumerate(("model.onnx", "weights.data")):
        model.with_name(name).rename(blobs / str(number))
        (snapshot / name).symlink_to(f"../../../blobs/{number}")
    return snapshot / "model.onnx"


def test_links_within_a_cached_repository_are_followed(model, cached, run, tmp_path):
    assert run("build", cached, "-o", tmp_path / "o.arena")[0] == 0
    assert run("run", tmp_path / "o.arena")[0] == 0


def test_a_link_within_the_folder_of_the_model_is_followed(model, run, tmp_path):
    weights = model.with_name("weights.data")
    weights.rename(weights.with_suffix(".other"))
    weights.symlink_to(weights.with_suffix(".other"))
    assert run("build", model, "-o", tmp_path / "o.arena")[0] == 0


@pytest.mark.parametrize("other", ["models--other--network/blobs/1", "secret"])
def test_a_link_that_leaves_the_cached_repository_is_refused(cached, refused, tmp_path, other):
    weights, target = cached.with_name("weights.data"), tmp_path / other
    target.parent.mkdir(exist_ok=True, parents=True)
    weights.resolve().rename(target)
    weights.unlink()
    weights.symlink_to(target)
    assert "is a link out of the folder" in refused("build", cached, "-o", tmp_path / "o.arena")
