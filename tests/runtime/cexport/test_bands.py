"""Networks in bands of rows as C: the outputs of the whole network, in less memory."""

import ctypes
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.session import Session
from arenite.pipeline.targets.c import lower_model_for_c
from arenite.planner.programs.row_steps import row_step
from arenite.runtime.cexport.bands import has_kernel_by_rows
from arenite.runtime.cexport.export import CExport
from arenite.runtime.operators import RuntimeOperator
from arenite.strategies import BandsLimitError, find
from support.exported_c import Bands, Machine, Micro, assert_same_bits, compiled, drawn, exported
from support.quantised_chain import expanding, gathered, mobile, residual
from support.tflite_networks import classifier, pooled, summed, tower
from support.tflite_operator import Given, Reference, operator_model
from support.tiny_onnx import parse, save, with_random_weights

SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
NETWORKS: dict[str, Callable[[], bytes]] = {
    "mobile": mobile,
    "residual": residual,
    "expanding": expanding,
    "summed_int8": summed,
    "summed_float32": partial(summed, "float32"),
    **{
        f"{network.__name__}_{dtype}": partial(network, dtype)
        for network in (classifier, tower, pooled)
        for dtype in ("int8", "int16", "uint8", "float32")
    },
}


def made(name: str, folder: Path) -> Path:
    path = folder / "network.tflite"
    path.write_bytes(NETWORKS[name]())
    return path


def source(export: CExport) -> str:
    return export.files[f"{export.name}.c"].decode()


@pytest.mark.parametrize("name", NETWORKS)
def test_bands_give_the_outputs_of_the_whole_at_every_budget(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    whole, bands = exported(path), Bands(path)
    least = bands.least
    machine = Machine.of(whole, compiled(whole, tmp_path / "whole"))
    seen = set()
    for budget in (least, (2 * least + whole.arena_bytes) // 3):
        banded = bands.within(budget)
        assert banded.arena_bytes <= budget < whole.arena_bytes
        assert "run_turn(arena, turn);" in source(banded)
        other = Machine.of(banded, compiled(banded, tmp_path / str(budget), *SANITIZED))
        for seed in range(3):
            inputs = drawn(whole, seed)
            (expected,), (found,) = machine.run(inputs).values(), other.run(inputs).values()
            np.testing.assert_array_equal(found, expected)
            seen.add(expected.tobytes())
    assert len(seen) > 1


@pytest.mark.parametrize("name", [name for name in NETWORKS if "float" not in name])
def test_bands_of_bytes_give_the_bits_of_reference_kernels(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    bands = Bands(path)
    banded = bands.within(bands.least)
    machine = Machine.of(banded, compiled(banded, tmp_path / "c"))
    assert_same_bits(machine, Reference(path) if "uint8" in name else Micro(path), 5)


@pytest.mark.parametrize("name", [name for name in NETWORKS if "float" in name])
def test_bands_of_floats_agree_with_our_runtime(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    bands = Bands(path)
    banded = bands.within(bands.least)
    inputs = drawn(banded, 0)
    with Session(path, strategy=find("greedy-by-size")) as session:
        (expected,) = session.run(inputs).values()
    (found,) = Machine.of(banded, compiled(banded, tmp_path / "c")).run(inputs).values()
    np.testing.assert_allclose(found.reshape(expected.shape), expected, 1e-4, 1e-5)


@pytest.mark.parametrize(
    "name", ["summed_float32", "pooled_float32", "summed_int8", "pooled_int8"]
)
def test_what_sums_up_rows_does_so_as_they_come(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    bands = Bands(path)
    text = source(bands.within(bands.least))
    kernel = "sum" if name.startswith("summed") else "average_pool"
    assert re.search(rf"    {kernel}_by_rows_(s8|f32)\(.*, first, end\);", text)


def test_a_window_over_the_image_takes_groups_of_its_channels(tmp_path: Path) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(gathered())
    bands = Bands(path)
    banded = bands.within(bands.least)
    machine = Machine.of(banded, compiled(banded, tmp_path / "c", *SANITIZED))
    assert_same_bits(machine, Micro(path), 3)
    assert (exported(path).arena_bytes, banded.arena_bytes) == (5_236, 1_992)


def test_a_text_takes_its_embeddings_word_by_word(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        with_random_weights(
            parse("""(int32[1,64] words) => (y)
        <float[200,16] table, float[16,3] weights>
        { a = Gather(table, words) b = ReduceMean<axes=[1], keepdims=0>(a)
          c = MatMul(b, weights) y = Softmax(c) }""")
        ),
    )
    with Session(path) as session:
        for export in (exported(path), Bands(path).within(Bands(path).least)):
            machine = Machine.of(export, compiled(export, tmp_path / str(export.arena_bytes)))
            for seed in range(3):
                words = np.random.default_rng(seed).integers(-50, 50, (1, 64)).astype(np.int32)
                (expected,), (found,) = (
                    each.run({"words": words}).values() for each in (session, machine)
                )
                np.testing.assert_allclose(found.reshape(-1), expected.reshape(-1), 1e-5)
    # The words, one embedding and the sums; one of these begins where the first word was.
    assert export.arena_bytes == 4 * (64 + 16 + 16 - 1)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("standard", ["-std=c99", "-std=c++11"])
@pytest.mark.parametrize("name", ["tower_int8", "pooled_int8", "tower_float32", "pooled_uint8"])
def test_compilers_have_nothing_to_say(
    name: str, compiler: str, standard: str, tmp_path: Path
) -> None:
    bands = Bands(made(name, tmp_path))
    banded = bands.within(bands.least)
    compiled(banded, tmp_path / "c", "-O2", compiler=compiler, standard=standard)


def test_strips_of_columns_go_below_bands_and_share_their_weights(tmp_path: Path) -> None:
    path = made("expanding", tmp_path)
    whole, bands = exported(path), Bands(path)
    banded = bands.within(bands.least)
    assert "/columns 0 to " in source(banded)
    assert _arrays(banded) == _arrays(whole)


def _arrays(export: CExport) -> set[str]:
    """Return what lies in flash, tables of rows apart."""
    text = export.files[f"{export.name}_weights.c"].decode()
    found = re.findall(r"const (\w+) \w+?_([a-z]+)\w*\[(\d+)\] =", text)
    assert found
    return {" ".join(each) for each in found if each[1] != "rows"}


def test_the_step_hook_runs_behind_every_turn(tmp_path: Path) -> None:
    bands = Bands(made("tower_int8", tmp_path))
    banded = bands.within(bands.least)
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "hook.h").write_text(
        "extern int turns_seen, last_step;\n"
        "#define NETWORK_STEP(i) (void)(turns_seen += 1, last_step = (i))\n"
    )
    (folder / "hook.c").write_text('#include "hook.h"\nint turns_seen, last_step;\n')
    hooks = "-include", str(folder / "hook.h"), str(folder / "hook.c")
    library = compiled(banded, folder, *hooks)
    Machine.of(banded, library).run(drawn(banded, 0))
    loaded = ctypes.CDLL(str(library))
    seen, last = (ctypes.c_int.in_dll(loaded, name) for name in ("turns_seen", "last_step"))
    assert seen.value == banded.interface.num_steps
    assert 0 < last.value < seen.value


def test_the_same_model_and_budget_give_the_same_bytes(tmp_path: Path) -> None:
    path = made("residual", tmp_path)
    one, other = (Bands(path).within(1_500) for _ in range(2))
    assert one.files == other.files
    assert one.digest != exported(path).digest


def test_a_budget_that_the_whole_network_keeps_needs_no_bands(tmp_path: Path) -> None:
    path = made("tower_int8", tmp_path)
    assert "run_turn" not in source(Bands(path).within(1 << 20))


def test_a_budget_below_the_least_says_what_binds(tmp_path: Path) -> None:
    bands = Bands(made("tower_int8", tmp_path))
    least = bands.least
    with pytest.raises(BandsLimitError) as caught:
        bands.within(least - 4)
    assert f"{least:,} B" in str(caught.value)


def pool(window: int, scale: float = 0.05) -> bytes:
    """An average whose result has one row."""
    options = {"padding": 1, "strideH": 9, "strideW": 2, "filterHeight": window, "filterWidth": 2}
    given = Given((1, 9, 6, 3), "int8", None, (0.05,), 3)
    result = Given((1, 1, 3, 3), "int8", None, (scale,), 3)
    return operator_model("AVERAGE_POOL_2D", [given], [result], ("Pool2DOptions", options))


def softmax() -> bytes:
    given = Given((1, 6, 5, 8), "int8", None, (0.1,), 3)
    result = Given((1, 6, 5, 8), "int8", None, (1 / 256,), -128)
    return operator_model("SOFTMAX", [given], [result], ("SoftmaxOptions", {"beta": 1.0}))


def is_allowed(data: bytes, folder: Path) -> bool:
    """Tell whether a model of one step may run by rows; its geometry allows it."""
    path = folder / "model.tflite"
    path.write_bytes(data)
    lowered = lower_model_for_c(path)
    (step,) = lowered.program.steps
    found = row_step(lowered.program, step)
    assert found is not None
    return has_kernel_by_rows(lowered.program, lowered.shifted, found)


def test_an_average_of_all_rows_has_a_kernel_by_rows_and_of_some_has_none(tmp_path: Path) -> None:
    assert is_allowed(pool(9), tmp_path)
    assert not is_allowed(pool(7), tmp_path)


def test_a_sum_whose_result_has_another_scale_has_no_kernel_by_rows(tmp_path: Path) -> None:
    assert not is_allowed(pool(9, 0.03), tmp_path)


def test_a_step_without_any_kernel_has_none_by_rows(tmp_path: Path) -> None:
    path = made("tower_int8", tmp_path)
    lowered = lower_model_for_c(path)
    found = next(
        each for step in lowered.program.steps
        if (each := row_step(lowered.program, step)) is not None
    )  # fmt: skip
    assert has_kernel_by_rows(lowered.program, lowered.shifted, found)

    class Unknown(RuntimeOperator):
        number = 250

    other = replace(found, step=replace(found.step, operator=Unknown()))
    assert not has_kernel_by_rows(lowered.program, lowered.shifted, other)
