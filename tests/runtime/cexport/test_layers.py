"""Every layer's result, looked at behind its step, is that of LiteRT's reference kernels."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.targets.c import compile_for_c
from arenite.planner.programs.program import Program
from arenite.runtime.cexport.base.layout import ArenaLayout
from arenite.runtime.cexport.base.options import COptions
from arenite.runtime.cexport.export import export_c
from arenite.strategies import find
from support.exported_c import Machine, compiled, drawn
from support.quantised_chain import mobile, residual
from support.shared_material import shared

MODELS = ("vww_96_int8", "kws_ref_model", "pretrainedResnet_quant")
HOOK = ctypes.CFUNCTYPE(None, ctypes.c_int)


def layers(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return every tensor of a model by its name, as LiteRT's reference kernels compute it."""
    package = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = package.Interpreter(
        str(path), experimental_op_resolver_type=package.OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )  # fmt: skip
    interpreter.allocate_tensors()
    (detail,) = interpreter.get_input_details()
    (array,) = inputs.values()
    interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    found = {}
    for each in interpreter.get_tensor_details():
        if each["name"] and each["shape"].size:
            found[each["name"]] = interpreter.get_tensor(each["index"])
    return found


def seen_behind(
    program: Program, layout: ArenaLayout, machine: Machine, number: int
) -> np.ndarray:
    """Return the result of a step, as it lies in the arena now."""
    tensor = program.tensors[program.steps[number].outputs[0]]
    start = layout.offset(tensor.name)
    data = machine.arena[start : start + tensor.size]
    return data.copy().view(tensor.dtype.label).reshape(tensor.shape)


def check(path: Path, folder: Path) -> None:
    model = compile_for_c(path)
    plan = find("best")(model.source.problem)
    export = export_c(model, plan, COptions(name="model"))
    layout = ArenaLayout.of(model.program, model.source.problem, plan, model.shifted)
    folder.mkdir(exist_ok=True)
    (folder / "hook.h").write_text("void look(int step);\n#define MODEL_STEP(i) look(i)\n")
    (folder / "hook.c").write_text(
        "void (*hook)(int);\nvoid look(int);\nvoid look(int step) { hook(step); }\n"
    )
    library = compiled(export, folder, "-include", str(folder / "hook.h"), str(folder / "hook.c"))
    machine = Machine.of(export, library)
    found: dict[int, np.ndarray] = {}

    def look(number: int) -> None:
        found[number] = seen_behind(model.program, layout, machine, number)

    kept = HOOK(look)
    loaded = ctypes.CDLL(str(library))
    ctypes.c_void_p.in_dll(loaded, "hook").value = ctypes.cast(kept, ctypes.c_void_p).value
    inputs = drawn(export, 3)
    machine.run(inputs)
    expected = layers(path, inputs)
    compared = 0
    for number, step in enumerate(model.program.steps):
        if step.outputs[0] in expected:
            array = expected[step.outputs[0]]
            np.testing.assert_array_equal(found[number].reshape(array.shape), array, step.name)
            compared += 1
    assert compared >= len(model.program.steps) - 1


@pytest.mark.parametrize("network", [mobile, residual])
def test_every_layer_of_a_network_of_our_own(network, tmp_path: Path) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(network(1))
    check(path, tmp_path / "c")


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_of_a_published_model(name: str, tmp_path: Path) -> None:
    path = shared(f"models/tflite/{name}.tflite")
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    check(path, tmp_path / "c")
