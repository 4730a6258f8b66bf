"""What compression made of a model's weights, on the page."""

import json

import pytest

from arenite.pipeline.report.compression import CompressionResultError, read_compression
from support.tiny_onnx import parse, save

MODEL = """(float[1,8,8,8] x) => (y) <float[16,8,3,3] w>
{ c = Conv<pads=[1,1,1,1]>(x, w) y = Relu(c) }"""


@pytest.fixture
def result(tmp_path, run):
    """A model, and the file that `compress --json` gives of it."""
    from support.tiny_onnx import with_random_weights

    model = save(tmp_path, with_random_weights(parse(MODEL)))
    code, out, err = run("compress", model, "-o", tmp_path / "small.onnx", "--json", "--bits", 4)
    assert (code, err) == (0, "")
    path = tmp_path / "result.json"
    path.write_text(out)
    return model, path


def test_the_page_shows_what_each_layer_came_to(result, run, tmp_path):
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    model, path = result
    page = tmp_path / "page.html"
    code, _, err = run("compare", model, "--quick", "-o", page, "--compression", path)
    assert (code, err) == (0, "")
    found = read_compression(path)
    (layer,) = found.layers
    assert (layer.name, layer.size, layer.bits, layer.kept) == ("w", 16 * 8 * 9 * 4, 4, 1.0)
    assert found.coded == layer.coded < layer.size / 5
    text = page.read_text()
    assert "Compressed weights" in text
    assert f"{layer.coded:,} B" in text


def test_a_result_of_another_model_is_not_shown(result, run, tmp_path):
    pytest.importorskip("bokeh", reason="the extra 'report' is not installed")
    model, path = result
    path.write_text(path.read_text().replace(model.name, "other.onnx"))
    page = tmp_path / "page.html"
    assert run("compare", model, "--quick", "-o", page, "--compression", path)[0] == 0
    assert "Compressed weights" not in page.read_text()


def test_without_a_page_there_is_nothing_to_show_it_on(result, run):
    model, path = result
    code, _, err = run("compare", model, "--quick", "--compression", path)
    assert code == 2
    assert "--compression requires --output" in err


def _without(key):
    def change(document):
        del document[key]

    return change


def _layer_with(**fields):
    def change(document):
        document["layers"][0].update(fields)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _without("layers"), _without("model"), _without("stages"), _layer_with(weights=0),
        _layer_with(kept=-1), _layer_with(bits=True), _layer_with(coded_bytes="1"),
        _layer_with(bits=9), lambda document: document.update(stages=[{}]),
        lambda document: document.update(stages=[{"error": -1.0, "accuracy": None}]),
        lambda document: document.update(layers=[3]),
        lambda document: document.update(stages=[{"error": 10**400, "accuracy": None}]),
    ],
)  # fmt: skip
def test_a_file_that_is_something_else_is_refused(result, change):
    _, path = result
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(CompressionResultError, match="no result of a compression"):
        read_compression(path)


def test_a_number_that_is_not_finite_is_refused(result):
    _, path = result
    document = json.loads(path.read_text())
    document.update(stages=[{"error": 1e999, "accuracy": None}])
    path.write_text(json.dumps(document))
    with pytest.raises(CompressionResultError, match="Infinity is not a finite number"):
        read_compression(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_json_object_is_refused_in_one_line(result, run, tmp_path, content):
    model, path = result
    path.write_bytes(content)
    page = tmp_path / "page.html"
    code, out, err = run("compare", model, "--quick", "-o", page, "--compression", path)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not page.exists()
