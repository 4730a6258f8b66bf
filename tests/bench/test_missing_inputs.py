"""Every contest that needs files says so, with exit code 2, when they are not there."""

import pytest

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

import bench.harness.inputs
from arenite.planner.errors import AreniteError
from bench.contests import CONTESTS
from bench.harness.contest import MissingInputsError
from support.contests import asked, run_contest

TAKES_FILES = (
    "alias-order-placement", "banded-latency", "bands", "c-source", "exact-placement",
    "litert-arena", "native-runtime", "onnxruntime-arena", "operator-order", "process-memory",
    "quantised-models", "tflm-arena",
)  # fmt: skip


@pytest.fixture(autouse=True)
def quick_costs(monkeypatch):
    """Measure no costs of the machine."""
    monkeypatch.setattr("bench.contests.bands.measured", dict)


def loaded(name):
    try:
        CONTESTS[name].load(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    return name


@pytest.mark.parametrize("name", TAKES_FILES)
def test_a_file_that_is_missing_is_named(name, tmp_path, capsys):
    missing = tmp_path / "absent"
    assert run_contest(loaded(name), str(missing)) == 2
    assert str(missing) in capsys.readouterr().err


@pytest.mark.parametrize("name", ["c-source", "litert-arena", "tflm-arena"])
def test_without_default_models_it_is_told_where_they_belong(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench.harness.inputs, "SHARED_TFLITE", tmp_path)
    assert run_contest(loaded(name)) == 2
    assert ".tflite files" in capsys.readouterr().err


def test_without_cmsis_nn_it_is_told_what_to_name(tmp_path, capsys):
    pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")
    assert run_contest(loaded("c-kernels")) == 2
    assert "--cmsis-nn must name a folder" in capsys.readouterr().err
    assert run_contest("c-kernels", "--cmsis-nn", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert "there is no" in said or "apt-get install" in said


def test_without_onnx2c_it_is_told_what_to_name(capsys):
    assert run_contest(loaded("c-onnx")) == 2
    assert "--onnx2c must name the program" in capsys.readouterr().err


def test_without_instances_it_is_told_what_writes_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bench.contests.placement.INSTANCES", tmp_path)
    assert run_contest("exact-placement") == 2
    assert "placement_instances writes them" in capsys.readouterr().err


def test_without_densenet_planning_time_says_so(capsys, monkeypatch):
    monkeypatch.setattr("bench.contests.placement.light_networks", list)
    assert run_contest("planning-time") == 2
    assert "light_densenet121.onnx" in capsys.readouterr().err


def test_without_a_cross_compiler_its_packages_are_named(tmp_path, capsys, monkeypatch):
    model = tmp_path / "model.tflite"
    model.touch()
    loaded("c-source")
    monkeypatch.setenv("PATH", "")
    assert run_contest("c-source", str(model)) == 2
    assert "apt-get install gcc-arm-none-eabi" in capsys.readouterr().err


def test_without_cmake_the_runner_is_asked_for(capsys, monkeypatch):
    loaded("process-memory")
    monkeypatch.setenv("PATH", "")
    assert run_contest("process-memory") == 2
    assert "--runner" in capsys.readouterr().err


def test_a_model_that_was_found_is_left_out_and_one_that_was_named_is_an_error(tmp_path, capsys):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.touch()
    bad.touch()

    def measure(path):
        if path == bad:
            raise AreniteError("no such operator")
        return path.name

    assert list(asked("bands", tmp_path).each((bad, good), measure)) == ["good"]
    assert "bad: left out: no such operator" in capsys.readouterr().err
    with pytest.raises(AreniteError):
        list(asked("bands", tmp_path, str(bad), str(good)).each((), measure))
    with pytest.raises(MissingInputsError, match="absent"):
        list(asked("bands", tmp_path, str(tmp_path / "absent")).each((), measure))
