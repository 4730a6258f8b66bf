"""Systems for LiteRT: interpreters in one arena, beside unchanged ones."""

import itertools

import numpy as np
import pytest

from arenite.pipeline.systems import SystemDescription, SystemFileError, interpret_system
from support.shared_material import shared
from support.tiny_chains import dense_chain

pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")


def stock(path):
    from arenite.runtime.targets.litert import load_interpreter

    interpreter = load_interpreter(path, 1)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter, given):
    for details, array in zip(interpreter.get_input_details(), given, strict=True):
        if array is not None:
            interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def drawn(interpreter, random):
    return [
        random.integers(0, 100, each["shape"]).astype(each["dtype"])
        for each in interpreter.get_input_details()
    ]


def write(folder, schedule, paths, more=""):
    lines = [f"schedule = [{schedule}]"]
    for name, path in paths.items():
        lines += [f"[models.{name}]", f'path = "{path}"']
    (folder / "system.toml").write_text("\n".join((*lines, more)), encoding="utf-8")
    return folder / "system.toml"


def test_what_is_handed_on_lies_where_it_was_made(tmp_path):
    paths = {}
    for name, sizes in {"first": (24, 40, 32), "other": (8, 64, 4), "second": (32, 16, 8)}.items():
        paths[name] = tmp_path / f"{name}.tflite"
        paths[name].write_bytes(dense_chain(sizes))
    connected = '[[connect]]\nfrom = "first.x2"\nto = "second.x0"'
    schedule = '"first", { maybe = ["other"] }, "second"'
    system = interpret_system(write(tmp_path, schedule, paths, connected))
    assert system.optimal
    random = np.random.default_rng(0)
    alone = {name: stock(path) for name, path in paths.items()}
    for has_other, poison in itertools.product((True, False), (0x00, 0xFF)):
        system.arena[:] = poison
        given = drawn(alone["first"], random)
        (crop,) = run(alone["first"], given)
        np.testing.assert_array_equal(run(system.interpreters["first"], given)[0], crop)
        if has_other:
            given = drawn(alone["other"], random)
            expected = run(alone["other"], given)
            np.testing.assert_array_equal(run(system.interpreters["other"], given), expected)
        expected = run(alone["second"], [crop])
        np.testing.assert_array_equal(run(system.interpreters["second"], [None]), expected)


@pytest.mark.parametrize("kind", ["any_order", "at_once"])
def test_real_models_compute_the_same_in_every_order(tmp_path, kind):
    paths = {name: shared(f"models/tflite/{name}.tflite")
             for name in ("vww_96_int8", "kws_ref_model", "micro_speech_quantized")}  # fmt: skip
    names = ", ".join(f'"{name}"' for name in paths)
    system = interpret_system(write(tmp_path, f"{{ {kind} = [{names}] }}", paths))
    assert system.optimal
    heights = [each.stock_bytes for each in system.interpreters.values()]
    assert system.height <= (max(heights) if kind == "any_order" else sum(heights))
    random = np.random.default_rng(0)
    alone = {name: stock(path) for name, path in paths.items()}
    for order in itertools.permutations(paths):
        system.arena[:] = 0xFF
        for name in order:
            given = drawn(alone[name], random)
            for found, expected in zip(
                run(system.interpreters[name], given), run(alone[name], given), strict=True
            ):
                np.testing.assert_array_equal(found, expected)


def test_sizes_that_are_not_those_of_the_file_are_refused(tmp_path):
    (tmp_path / "a.tflite").write_bytes(dense_chain((8, 4)))
    path = write(tmp_path, '"a"', {"a": "a.tflite"}, "dims = { n = 3 }")
    with pytest.raises(SystemFileError, match="LiteRT runs a model as its file has it"):
        interpret_system(SystemDescription.read(path))
