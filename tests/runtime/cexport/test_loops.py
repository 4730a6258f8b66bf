"""Loops whose end depends on data, in C: the bits of TensorFlow Lite Micro and of LiteRT."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")

from tflite import BuiltinOperator as Op

from arenite.runtime.cexport.base.errors import NotExportedError
from support.exported_c import Machine, Micro, compiled, exported
from support.tflite_operator import Reference
from support.tiny_loops import LOOPS, Graph, Kind, below, nested, nested_deep, swapping
from support.tiny_tflite import tiny_tflite

FLOAT_SUMS = {"beside convolutions"}
"""Whose sums may be in another order."""


def saved(folder: Path, model: bytes) -> Path:
    path = folder / "network.tflite"
    path.write_bytes(model)
    return path


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_agrees_with_both_runtimes_to_the_bit(name: str, tmp_path: Path) -> None:
    looping = LOOPS[name]
    path = saved(tmp_path, looping.model)
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    micro, reference = Micro(path), Reference(path)
    for given, feeds in zip(looping.runs, looping.feeds, strict=True):
        found = [each.tobytes() for each in machine.run(feeds).values()]
        if name in FLOAT_SUMS:
            (expected,), (made,) = reference.run(given), machine.run(feeds).values()
            np.testing.assert_allclose(made.reshape(expected.shape), expected, atol=1e-3)
            continue
        assert found[0] == micro.run(given)[0].tobytes()
        if name != "layers of bytes":  # LiteRT rounds them otherwise
            assert found == [each.tobytes() for each in reference.run(given)]


def test_inputs_of_the_body_may_be_its_outputs_in_another_order(tmp_path: Path) -> None:
    looping = swapping(computes=False)
    export = exported(saved(tmp_path, looping.model))
    machine = Machine.of(export, compiled(export, tmp_path / "c", "-fsanitize=undefined"))
    for (a, b, c, n), feeds in zip(looping.runs, looping.feeds, strict=True):
        found = list(machine.run(feeds).values())
        for each, expected in zip(found, (b, a, c) if n % 2 else (a, b, c), strict=True):
            assert each.tobytes() == expected.tobytes()


def test_condition_and_body_are_functions_and_equal_constants_are_one(tmp_path: Path) -> None:
    export = exported(saved(tmp_path, LOOPS["layers of bytes"].model))
    text = export.files["network.c"].decode()
    assert re.findall(r"static void (network_while_\w+)\(uint8_t \*arena\)", text) == [
        "network_while_1_condition", "network_while_1_body",
    ]  # fmt: skip
    assert export.weight_bytes < 200
    assert "NETWORK_CYCLES" not in export.files["network.h"].decode()
    assert text.count("NETWORK_STEP(1);") == 2


def test_loops_in_loops_hand_on_the_number_of_the_outermost(tmp_path: Path) -> None:
    text = exported(saved(tmp_path, nested_deep(3))).files["network.c"].decode()
    assert set(re.findall(r"NETWORK_STEP\((\d+)\);", text)) == {"0"}
    assert "network_while_0_body_while_0_body_while_0_condition(inner);" in text


def test_an_operator_without_a_kernel_in_a_loop_is_named(tmp_path: Path) -> None:
    image = Kind(shape=(1, 2, 3, 4))
    main, body = Graph("main", n=Kind("int32"), x=image), Graph("body", n=Kind("int32"), x=image)
    made = main.loop(1, 2, 0, 1)
    normal = body.op(Op.LOCAL_RESPONSE_NORMALIZATION, 1)
    model = tiny_tflite(
        main.made(made[1]), below(3, 0, n=Kind("int32"), x=image), body.made(0, normal)
    )
    with pytest.raises(NotExportedError, match=r"LocalResponseNorm.* in it: no C kernel"):
        exported(saved(tmp_path, model))


def doubling(outside: Kind, inside: Kind) -> bytes:
    """Bytes that are added to themselves three times."""
    main, body = (
        Graph("main", n=Kind("int32"), x=outside),
        Graph("body", n=Kind("int32"), x=inside),
    )
    made = main.loop(1, 2, 0, 1)
    more = body.op(Op.ADD, 0, body.constant(1, kind=Kind("int32")))
    return tiny_tflite(
        main.made(made[1]), below(3, 0, n=Kind("int32"), x=inside),
        body.made(more, body.op(Op.ADD, 1, 1)),
    )  # fmt: skip


PIXELS = Kind("uint8", (4,), 0.5, 3)


def test_bytes_without_a_sign_are_carried_with_one(tmp_path: Path) -> None:
    path = saved(tmp_path, doubling(PIXELS, PIXELS))
    export = exported(path)
    machine, reference = Machine.of(export, compiled(export, tmp_path / "c")), Reference(path)
    given = [np.zeros(1, np.int32), np.array([0, 3, 17, 120], np.uint8)]
    (found,) = machine.run(dict(zip(("n", "x"), given, strict=True))).values()
    (expected,) = reference.run(given)
    np.testing.assert_array_equal(found, expected)


def test_bytes_that_stand_for_numbers_in_the_loop_alone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotExportedError, match="carries 'x' as bytes and as quantised ones"):
        exported(saved(tmp_path, doubling(Kind("uint8", (4,)), PIXELS)))


def test_the_arena_holds_the_larger_of_both(tmp_path: Path) -> None:
    assert exported(saved(tmp_path, nested().model)).arena_bytes < 200
