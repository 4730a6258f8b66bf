"""Programs run with the imports replaced."""

import subprocess
import sys

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
LITE = "arenite.compat.tflite.interpreter"
PROGRAM = """
import importlib.util, sys
import library
import onnxruntime as ort
from onnxruntime import InferenceSession, capi
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

assert library.InferenceSession is InferenceSession is ort.InferenceSession
assert importlib.util.find_spec("onnxruntime") is not None
print(InferenceSession.__module__, *sys.argv[1:])
session = InferenceSession("model.onnx")
print(session.run(None, {"x": [0, 1, 2]})[0].round(2))
try:
    session.run(None, {"x": [1, 2]})
except InvalidArgument:
    sys.exit(3)
"""
MODEL = """<ir_version: 8, opset_import: ["": 17]>
graph (float[3] x) => (float[3] y) {z = Tan(x) y = Abs(z)}"""
"""With an operator that ONNX Runtime runs."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "library.py").write_text("from onnxruntime import InferenceSession")
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    return tmp_path


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "arenite.compat", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_program_and_its_libraries_run_on_arenite(folder):
    before = sorted(folder.iterdir())
    found = run(folder, "program.py", "--flag", "one")
    assert found.returncode == 3, found.stderr
    assert found.stdout == "arenite.compat.onnxruntime.session --flag one\n[0.   1.56 2.19]\n"
    assert [each for each in sorted(folder.iterdir()) if each.name != "__pycache__"] == before


def test_a_module_is_run_and_compared_with_the_original(folder):
    found = run(folder, "--compare", "-m", "program")
    assert found.returncode == 3, found.stderr
    assert found.stdout.startswith("arenite.compat.onnxruntime.session\n")
    head, *rows = found.stderr.splitlines()[-5 if "building" in found.stderr else -4 :]
    assert head.split() == ["arenite", "original", "saved"]
    assert [row.split("  ")[0] for row in rows][:3] == ["time", "peak memory", "exit status"]
    assert rows[2].split()[2:] == ["3", "3"]


def test_other_modules_of_a_replaced_package_are_the_original_ones(folder):
    pytest.importorskip("ai_edge_litert.schema_py_generated")
    (folder / "other.py").write_text(
        "from ai_edge_litert import schema_py_generated as schema\n"
        "from ai_edge_litert.interpreter import Interpreter\n"
        "print(Interpreter.__module__, schema.ModelT.__module__)"
    )
    found = run(folder, "other.py")
    assert found.stdout.split() == [
        "arenite.compat.tflite.interpreter",
        "ai_edge_litert.schema_py_generated",
    ]


def test_tensorflow_has_the_interpreter_alone(folder):
    (folder / "lite.py").write_text(
        "import tensorflow as tf\n"
        "from tensorflow.lite.python.interpreter import Interpreter\n"
        "assert tf.lite.Interpreter is Interpreter\n"
        "print(Interpreter.__module__, hasattr(tf, 'keras'))"
    )
    assert (
        run(folder, "--tensorflow", "lite.py").stdout
        == "arenite.compat.tflite.interpreter False\n"
    )


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes_of_multiprocessing_have_the_replaced_modules(folder, method):
    (folder / "workers.py").write_text(
        "import multiprocessing, onnxruntime\n"
        "def work(queue): queue.put(onnxruntime.InferenceSession.__module__)\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    queue = context.Queue()\n"
        "    process = context.Process(target=work, args=(queue,))\n"
        "    process.start()\n"
        "    print(queue.get())\n"
        "    process.join()\n"
    )
    assert run(folder, "workers.py").stdout == "arenite.compat.onnxruntime.session\n"


def test_usual_forms_of_imports_find_the_replaced_modules(folder):
    (folder / "imports.py").write_text(
        "import importlib\n"
        "from onnxruntime import *\n"
        "import onnxruntime, onnxruntime as ort\n"
        "try:\n"
        "    from tflite_runtime.interpreter import Interpreter\n"
        "except ImportError:\n"
        "    from tensorflow.lite import Interpreter\n"
        "import tflite_runtime.interpreter as tflite\n"
        "assert tflite.Interpreter is Interpreter is importlib.import_module("
        "'ai_edge_litert.interpreter').Interpreter\n"
        "assert importlib.import_module('onnxruntime') is ort\n"
        "assert ort.InferenceSession is InferenceSession and ort.__version__\n"
        "print(Interpreter.__module__, InferenceSession.__module__)\n"
    )
    found = run(folder, "imports.py")
    assert found.stdout.split() == [LITE, "arenite.compat.onnxruntime.session"], found.stderr


def test_a_program_that_fails_ends_with_its_traceback(folder):
    (folder / "fails.py").write_text("import onnxruntime\nraise KeyError('reason')")
    found = run(folder, "fails.py")
    assert found.returncode == 1
    assert found.stderr.rstrip().endswith("KeyError: 'reason'")


@pytest.mark.parametrize("arguments", [[], ["--unknown"], ["-m"]])
def test_wrong_usage(folder, arguments):
    found = run(folder, *arguments)
    assert found.returncode == 2
    assert "usage: python -m arenite.compat" in found.stdout + found.stderr
