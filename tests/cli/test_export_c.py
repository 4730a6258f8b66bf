"""`arenite export --to c`: a folder that builds, and what is refused before that is written."""

import errno
import json
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

from arenite.runtime.cexport import kernels, reference
from support.exported_c import DOUBLE
from support.quantised_chain import mobile
from support.tflite_operator import Given, operator_model, weights
from support.tiny_onnx import parse, save

CMSIS_NN = ("--to", "c", "--kernels", "cmsis-nn", "--extension", "none")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "tiny.tflite"
    path.write_bytes(mobile())
    return path


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_model_becomes_a_folder_whose_test_passes(model, tmp_path, run):
    code, out, err = run("export", model, "--to", "c", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert "tiny_run(arena)" in out
    done = subprocess.run(["make", "-C", tmp_path / "out", "check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "tiny: 0 wrong" in done.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_each_compiler_has_its_own_objects_and_a_test_for_another_processor_is_emulated(
    model, tmp_path, run_json
):
    cross = "arm-linux-gnueabihf"
    if shutil.which(f"{cross}-gcc") is None:
        pytest.skip(f"needs {cross}-gcc")
    folder = tmp_path / "out"
    run_json("export", model, "--to", "c", "-o", folder)
    other = [f"CC={cross}-gcc", f"AR={cross}-ar"]

    def made(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def machine() -> bytes:
        return (folder / "libtiny.a").read_bytes().partition(b"\x7fELF")[2][14:16]

    machines = []
    for arguments in ([], other, []):
        assert made(*arguments).returncode == 0
        machines.append(machine())
    assert machines[0] == machines[2] != machines[1]
    refused = made("check", *other, "RUNNER=")
    assert refused.returncode != 0
    assert f"the test is for {cross}, this machine is" in refused.stderr
    emulated = made("check", *other)
    if shutil.which("qemu-arm") or shutil.which("qemu-arm-static"):
        assert "qemu-arm" in emulated.stdout
        assert "tiny: 0 wrong" in emulated.stdout


def test_json_says_what_was_written(model, tmp_path, run_json):
    said = run_json("export", model, "--to", "c", "-o", tmp_path / "out", "--name", "eye")
    folder = tmp_path / "out"
    assert (said["target"], said["name"], said["rounding"]) == ("c", "eye", "double")
    assert said["arena_bytes"] == said["height"]
    assert "conv_pairs_s8" in said["kernels"]
    assert said["files"] == sorted(said["files"])
    assert all((folder / name).is_file() for name in said["files"])
    assert {"eye.h", "eye.c", "eye_weights.c", "eye_test.c", "Makefile", "CMakeLists.txt",
            "library.properties", "idf_component.yml", "zephyr/module.yml"} <= {
        *said["files"]
    }  # fmt: skip
    assert f"#define EYE_ARENA_BYTES {said['arena_bytes']}" in (folder / "eye.h").read_text()


def test_the_height_is_that_of_the_plan(model, tmp_path, run_json):
    planned = run_json("plan", model, "--target", "c")
    said = run_json("export", model, "--to", "c", "-o", tmp_path / "out")
    assert (said["height"], said["strategy"]) == (planned["height"], planned["strategy"])


def test_a_plan_of_it_is_verified(model, tmp_path, run):
    assert run("plan", model, "--target", "c", "--align", "8", "-o", tmp_path / "p.json")[0] == 0
    assert run("verify", tmp_path / "p.json", model)[0] == 0


def test_alignment_is_the_users(model, tmp_path, run_json):
    said = run_json("export", model, "--to", "c", "-o", tmp_path / "out", "--align", "16")
    assert said["alignment"] == 16
    assert said["arena_bytes"] % 16 == 0


def test_a_model_without_kernels_is_refused_before_anything_is_written(tmp_path, refused):
    path = tmp_path / "sums.tflite"
    image, options = Given((1, 2, 3, 4)), ("LocalResponseNormalizationOptions", {"radius": 1})
    path.write_bytes(operator_model("LOCAL_RESPONSE_NORMALIZATION", [image], [image], options))
    said = refused("export", path, "--to", "c", "-o", tmp_path / "out")
    assert "LocalResponseNorm" in said
    assert not (tmp_path / "out").exists()


def vectors(folder):
    """Return the inputs and outputs that a model's test holds."""
    (test,) = folder.glob("*_test.c")
    return re.findall(r"(?:given|expected)_\w+[^;=]*= {.*?}", test.read_text(), re.DOTALL)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("budget", ["1900", "80%"])
def test_within_a_budget_it_gives_the_outputs_of_the_whole(model, tmp_path, run_json, budget):
    whole = run_json("export", model, "--to", "c", "-o", tmp_path / "whole")
    said = run_json("export", model, "--to", "c", "-o", tmp_path / "out", "--budget", budget)
    most = 1900 if budget == "1900" else 0.8 * whole["height"]
    assert said["arena_bytes"] == said["height"] <= most < whole["height"]
    assert said["plan_digest"] != whole["plan_digest"]
    found = vectors(tmp_path / "whole")
    assert len(found) > 1
    assert vectors(tmp_path / "out") == found
    done = subprocess.run(["make", "-C", tmp_path / "out", "check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "tiny: 0 wrong" in done.stdout


def test_a_budget_that_holds_it_whole_changes_nothing(model, tmp_path, run_json):
    run_json("export", model, "--to", "c", "-o", tmp_path / "whole")
    run_json("export", model, "--to", "c", "-o", tmp_path / "out", "--budget", "1MiB")
    assert (tmp_path / "out" / "tiny.c").read_bytes() == (
        tmp_path / "whole" / "tiny.c"
    ).read_bytes()


def test_the_same_budget_gives_the_same_bytes(model, tmp_path, run_json):
    for name in ("one", "other"):
        said = run_json("export", model, "--to", "c", "-o", tmp_path / name, "--budget", "2KiB")
    for name in said["files"]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_a_budget_that_bands_do_not_reach_is_refused_before_anything_is_written(
    model, tmp_path, refused
):
    said = refused("export", model, "--to", "c", "-o", tmp_path / "out", "--budget", "1KiB")
    assert "the budget is 1,024 B, the least arena that bands reach is " in said
    assert "raise --budget" in said
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_files_is_refused(model, tmp_path, refused):
    said = refused("export", model, "--to", "c", "-o", tmp_path)
    assert "no export" in said
    assert list(tmp_path.iterdir()) == [model]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--to", "c", "--header", "x.h"), "--header is for --to tflm"),
        (("--to", "c", "--name", "math"), "is no name for C and its header; try 'math_'"),
        (("--to", "c", "--name", "two words"), "is no name for C and its header; try 'two_words'"),
        (("--to", "tflm", "--rounding", "single"), "are for --to c"),
        (("--to", "tflm", "--name", "eye"), "are for --to c"),
        (("--to", "tflm", "--align", "8"), "are for --to c"),
        (("--to", "tflm", "--budget", "1KiB"), "are for --to c"),
        (("--to", "tflm", "--kernels", "cmsis-nn"), "are for --to c"),
        (("--to", "c", "--kernels", "cmsis-nn"), "requires --extension"),
        (("--to", "c", "--extension", "mve"), "--extension is for --kernels cmsis-nn"),
        ((*CMSIS_NN, "--rounding", "single"), "CMSIS-NN supports double only"),
        ((*CMSIS_NN, "--budget", "2KiB"), "cannot run bands of rows"),
    ],
)
def test_options_that_do_not_go_together_are_misuse(model, tmp_path, run, options, words):
    code, _, err = run("export", model, *options, "-o", tmp_path / "out")
    assert code == 2
    assert words in " ".join(err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_for_cmsis_nn_it_builds_with_the_users_own(model, tmp_path, run_json):
    folder = tmp_path / "out"
    said = run_json("export", model, *CMSIS_NN, "-o", folder)
    assert said["extension"] == "none"
    assert {"cmsis_conv_s8", "cmsis_depthwise_s8"} <= {*said["kernels"]}
    (tmp_path / "nn" / "Include").mkdir(parents=True)
    shutil.copy(DOUBLE / "arm_nnfunctions.h", tmp_path / "nn" / "Include")
    library = tmp_path / "libcmsis-nn.a"
    subprocess.run(["gcc", "-O1", "-c", DOUBLE / "functions.c", "-o", "nn.o"], cwd=tmp_path,
                   check=True)  # fmt: skip
    subprocess.run(["ar", "rcs", library, "nn.o"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["make", "-C", folder, "check", f"CMSIS_NN={tmp_path / 'nn'}",
         f"CMSIS_NN_LIBRARY={library}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "tiny: 0 wrong" in done.stdout
    assert "PUBLIC cmsis-nn)" in (folder / "CMakeLists.txt").read_text()


def test_an_onnx_model_is_tested_against_our_runtime(tmp_path, run_json):
    text = """(float[N, 3, 8, 8] x) => (y) <float[4, 3, 3, 3] w> {
        c = Conv<pads=[1, 1, 1, 1]>(x, w) r = Relu(c) y = GlobalAveragePool(r) }"""
    model = parse(text)
    array = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    model.graph.initializer[0].raw_data = array.tobytes()
    path = save(tmp_path, model)
    said = run_json("export", path, "--to", "c", "-o", tmp_path / "out", "--dim", "N=1")
    assert said["reference"] == "Arenite's runtime"
    done = subprocess.run(["make", "-C", tmp_path / "out", "check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "out" / "arenite-export.json").read_text())["files"]


@pytest.mark.parametrize("is_installed", [True, False])
def test_layers_with_weights_of_bytes_are_tested_as_litert_computes_them(
    is_installed, tmp_path, run_json, monkeypatch
):
    if not is_installed:
        monkeypatch.setattr(reference, "_INTERPRETERS", ())
    random = np.random.default_rng(0)
    matrix = weights(random.integers(-127, 128, (6, 40)).astype(np.int8), scales=(0.3,))
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(
        operator_model(
            "FULLY_CONNECTED", [Given((1, 40)), matrix, None], [Given((1, 6))],
            ("FullyConnectedOptions", {}),
        )
    )  # fmt: skip
    said = run_json("export", path, "--to", "c", "-o", tmp_path / "out", "--name", "m")
    by = "LiteRT's reference kernels" if is_installed else "Arenite's runtime"
    assert said["reference"] == by
    done = subprocess.run(["make", "-C", tmp_path / "out", "check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_source_that_fails_its_own_test_is_not_written(model, tmp_path, refused, monkeypatch):
    bundle = kernels.bundle

    def broken(names):
        return (
            bundle(names)
            .replace("value + k->out_zero", "value + k->out_zero + 1")
            .replace("2 * k->out_zero + 1", "2 * k->out_zero + 7")
        )

    monkeypatch.setattr(kernels, "bundle", broken)
    said = refused("export", model, "--to", "c", "-o", tmp_path / "out")
    assert "outputs of its test differ; nothing was written" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_it_says_that_the_test_passed_on_this_machine(model, tmp_path, run_json):
    assert run_json("export", model, "--to", "c", "-o", tmp_path / "out")["tested"] is True


def test_source_whose_test_cannot_run_is_written_only_if_the_user_says_so(
    model, tmp_path, run_json, refused, monkeypatch
):
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho No space left on device >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent), prepend=":")
    folder = tmp_path / "out"
    said = refused("export", model, "--to", "c", "-o", folder)
    assert "test of the C source did not run: No space left on device" in said
    assert "--no-test" in said
    assert not folder.exists()
    assert run_json("export", model, "--to", "c", "-o", folder, "--no-test")["tested"] is False
    assert (folder / "tiny.c").is_file()


def test_no_test_is_for_c_source(model, tmp_path, run):
    code, _, err = run("export", model, "--to", "tflm", "-o", tmp_path / "out", "--no-test")
    assert code == 2
    assert "--no-test is for --to c" in err


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_tolerance_is_that_of_the_models_own_arithmetic(tmp_path, run_json):
    graph = "(float[64] x) => (y) <float k = {300}> {a = Exp(x) b = Mul(a, k) y = Sin(b)}"
    path = save(tmp_path, parse(graph))
    assert run_json("export", path, "--to", "c", "-o", tmp_path / "out")["tested"] is True
    text = (tmp_path / "out" / "tiny_test.c").read_text()
    (most,) = {float(each) for each in re.findall(r"<= ([\d.e-]+)f", text)}
    assert 1e-5 < most <= 1e-3


def test_an_output_that_is_a_constant_is_copied(tmp_path, run_json):
    text = "(float[2] x) => (y, z) <float[2] w = {1, 2}> { y = Relu(x) z = Identity(w) }"
    path = save(tmp_path, parse(text))
    said = run_json("export", path, "--to", "c", "-o", tmp_path / "out")
    assert said["height"] == run_json("plan", path, "--target", "c")["height"] == 16


def test_the_search_of_bands_ends_within_the_time_limit(model, tmp_path, run):
    options = ("--budget", "1900", "--time-limit", "1e-9", "--order", "given")
    code, _, err = run("export", model, "--to", "c", "-o", tmp_path / "out", *options)
    assert code == 1
    assert "the search was stopped" in err
    assert not (tmp_path / "out").exists()


def test_a_full_temporary_folder_is_named(model, tmp_path, refused, monkeypatch):
    pytest.importorskip("ai_edge_litert")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(reference.np, "savez", full)
    said = refused("export", model, "--to", "c", "-o", tmp_path / "out")
    assert tempfile.gettempdir() in said
    assert "inputs of the test cannot be written: No space left on device" in said
    assert not (tmp_path / "out").exists()


def test_memories_and_the_boundary_are_stated(model, tmp_path, run_json):
    said = run_json(
        "export", model, "--to", "c", "-o", tmp_path / "out", "--memory", "fast=1500",
        "--memory", "slow=1MiB", "--boundary", "exclude",
    )  # fmt: skip
    assert sum(said["memories"].values()) == said["arena_bytes"]
    assert 0 < said["memories"]["fast"] <= 1500
    assert said["tested"]
    (name,) = (each for each in said["files"] if each.endswith("_memories.ld"))
    assert (tmp_path / "out" / name).is_file()


@pytest.mark.parametrize(
    ("options", "expected", "reason"),
    [
        (("--memory", "fast=1KiB", "--budget", "50%"), 2, "leave out --budget"),
        (("--boundary", "exclude", "--shape", "x=1x1..4"), 2, "take one size"),
        (("--memory", "fast=1", "--memory", "slow=2"), 1, "no plan fits 2 B in memory 'slow'"),
    ],
)
def test_what_memories_do_not_go_with_is_refused(model, tmp_path, run, options, expected, reason):
    code, _, err = run("export", model, "--to", "c", "-o", tmp_path / "out", *options)
    assert code == expected
    assert reason in err
    assert not (tmp_path / "out").exists()


def test_memories_are_for_c_source(model, tmp_path, misused):
    for options in (("--memory", "fast=1KiB"), ("--boundary", "exclude")):
        said = misused("export", model, "--to", "tflm", "-o", tmp_path / "out", *options)
        assert "--memory and --boundary are for --to c" in said
