"""Every benchmark that needs files says so, with exit code 2, when they are not there."""

from importlib import import_module

import pytest

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

import harness.inputs
from arenite.planner.errors import AreniteError
from harness.command import MissingInputsError
from harness.inputs import each_of

TAKES_FILES = (
    "alias_order_placement",
    "banded_latency",
    "bands",
    "c_source",
    "exact_placement",
    "litert_arena",
    "native_runtime",
    "onnxruntime_arena",
    "operator_order",
    "process_memory",
    "quantised_models",
    "tflm_arena",
)


def main_of(script: str):
    try:
        return import_module(script).main
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize("script", TAKES_FILES)
def test_a_file_that_is_missing_is_named(script, tmp_path, capsys):
    missing = tmp_path / "absent"
    assert main_of(script)([str(missing)]) == 2
    assert str(missing) in capsys.readouterr().err


@pytest.mark.parametrize("script", ["c_source", "litert_arena", "tflm_arena"])
def test_without_default_models_it_is_told_where_they_belong(
    script, tmp_path, capsys, monkeypatch
):
    main = main_of(script)
    monkeypatch.setattr(harness.inputs, "SHARED_TFLITE", tmp_path)
    assert main([]) == 2
    assert ".tflite files" in capsys.readouterr().err


def test_without_cmsis_nn_it_is_told_what_to_name(tmp_path, capsys):
    pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")
    script = import_module("c_kernels")
    assert script.main([]) == 2
    assert "--cmsis-nn must name a folder" in capsys.readouterr().err
    assert script.main(["--cmsis-nn", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "there is no" in said or "apt-get install" in said


def test_without_onnx2c_it_is_told_what_to_name(capsys):
    assert main_of("c_onnx")([]) == 2
    assert "--onnx2c must name the program" in capsys.readouterr().err


def test_without_instances_it_is_told_what_writes_them(tmp_path, capsys, monkeypatch):
    script = import_module("exact_placement")
    monkeypatch.setattr(script, "INSTANCES", tmp_path)
    assert script.main([]) == 2
    assert "placement_instances.py" in capsys.readouterr().err


def test_without_densenet_planning_time_says_so(capsys, monkeypatch):
    script = import_module("planning_time")
    monkeypatch.setattr(script, "light_networks", list)
    assert script.main([]) == 2
    assert "light_densenet121.onnx" in capsys.readouterr().err


def test_without_a_cross_compiler_its_packages_are_named(tmp_path, capsys, monkeypatch):
    model = tmp_path / "model.tflite"
    model.touch()
    script = main_of("c_source")
    monkeypatch.setenv("PATH", "")
    assert script([str(model)]) == 2
    assert "apt-get install gcc-arm-none-eabi" in capsys.readouterr().err


def test_without_cmake_the_runner_is_asked_for(capsys, monkeypatch):
    script = main_of("process_memory")
    monkeypatch.setenv("PATH", "")
    assert script([]) == 2
    assert "--runner" in capsys.readouterr().err


def test_a_model_that_was_found_is_left_out_and_one_that_was_named_is_an_error(tmp_path, capsys):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.touch()
    bad.touch()

    def measure(path):
        if path == bad:
            raise AreniteError("no such operator")
        return path.name

    assert list(each_of((), (bad, good), measure)) == ["good"]
    assert "bad: left out: no such operator" in capsys.readouterr().err
    with pytest.raises(AreniteError):
        list(each_of((bad, good), (), measure))
    with pytest.raises(MissingInputsError, match="absent"):
        list(each_of((tmp_path / "absent",), (), measure))
