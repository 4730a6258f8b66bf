"""Models as C source on emulated boards: bits, arena, stack, variables and code.

The outputs must be those of TensorFlow Lite Micro's interpreter to the bit; of LiteRT's reference
kernels where that refuses the type.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from bench.boards.board import board as board_named
from bench.boards.program import BuildError, Footprint, Subject, build, exported, footprint
from bench.boards.run import (
    BoardError,
    Report,
    joined,
    litert_outputs,
    random_inputs,
    run,
    tflm_outputs,
)
from support import tflite_networks as networks
from support.command import main
from support.shared_material import shared

STACK = 512
"""Bytes of stack that a model may take."""
TEXT = 9 << 10
"""Bytes of instructions that a model may take."""
RUNS = 3
TRAINED_RUNS = 10
KIB = 1 << 10

M0, M3, M4, M7, M55, RISCV, RVV, XTENSA = (
    "microbit", "lm3s6965evb", "mps2-an386", "mps2-an500", "mps3-an547", "virt", "virt-rvv", "sim",
)  # fmt: skip


@dataclass(frozen=True)
class Network:
    """A network of our own, the boards that run it, and what its outputs are compared with."""

    name: str
    make: Callable[[], bytes]
    boards: tuple[str, ...]
    outputs: Callable[..., list[list[np.ndarray]]] = tflm_outputs
    tolerance: float = 0
    """Of floats, in parts of the largest: sums run in another order, exponentials differ."""
    library_variables: bool = False
    """Whether the compiler's library keeps some, an error number beside its exponential."""
    budget: int = 0
    """Most bytes of the arena, where parts of it run in bands of rows; 0 if it runs whole."""


NETWORKS = (
    Network("classifier", networks.classifier, (M0, M3, M4, M7, M55, RISCV, RVV, XTENSA)),
    Network("detector", networks.detector, (M3, M55, RVV, XTENSA)),
    Network("keyword", networks.keyword, (M0, M4, RISCV, RVV, XTENSA)),
    Network("autoencoder", networks.autoencoder, (M0, M55, RVV, XTENSA)),
    Network(
        "classifier_uint8", lambda: networks.classifier("uint8"), (M0, M7), litert_outputs
    ),
    Network("classifier_int16", lambda: networks.classifier("int16"), (M4, RISCV, XTENSA)),
    Network("tower_int16", lambda: networks.tower("int16"), (M0, M55), budget=4 * KIB),
    Network("encoder", networks.encoder, (M7, M55, RVV)),
    Network(
        "classifier_float", lambda: networks.classifier("float32"), (M3, M7, RISCV),
        tolerance=1e-6, library_variables=True,
    ),
    Network(
        "autoencoder_float", lambda: networks.autoencoder("float32"), (M0, M4), tolerance=1e-6,
    ),
    Network("tall", networks.tall, (M0, M3, M55, RISCV, RVV, XTENSA), budget=10 * KIB),
    Network(
        "tower_uint8", lambda: networks.tower("uint8"), (M4, RVV), litert_outputs, budget=2 * KIB,
    ),
    Network(
        "pooled_float", lambda: networks.pooled("float32"), (M4, M7), tolerance=1e-6,
        library_variables=True, budget=12 * KIB,
    ),
)  # fmt: skip
BY_NAME = {each.name: each for each in NETWORKS}
REAL = (
    ("kws_ref_model", M0),
    ("kws_ref_model", M55),
    ("vww_96_int8", M3),
    ("vww_96_int8", M4),
    ("kws_ref_model", XTENSA),
    ("person_detect", M3),
    ("person_detect", XTENSA),
    ("pretrainedResnet_quant", RISCV),
    ("pretrainedResnet_quant", M55),
    ("pretrainedResnet_quant", RVV),
    ("vww_96_int8", RVV),
    ("kws_ref_model", RVV),
    ("person_detect", RVV),
    ("micro_speech_quantized", M0),
    ("mww_okay_nabu", M4),
    ("tf2_mobilenet_v2_1.0_224_ptq", M7),
)
INSTRUCTIONS = {
    ("vww_96_int8", M4): 15_757_000, ("kws_ref_model", M55): 1_415_000,
    ("pretrainedResnet_quant", M55): 4_181_000, ("vww_96_int8", RVV): 3_010_000,
    ("kws_ref_model", RVV): 740_000, ("pretrainedResnet_quant", RVV): 3_120_000,
    ("kws_ref_model", XTENSA): 16_840_000, ("person_detect", XTENSA): 45_830_000,
}  # fmt: skip
"""Of an inference, by GCC 12.2 or Clang 19; another may take 3 % more."""
BANDED = (
    ("vww_96_int8", M3, 28_032, 29_500),
    ("vww_96_int8", RVV, 28_032, 29_500),
    ("kws_ref_model", M0, 3_888, 4_900),
    ("pretrainedResnet_quant", M0, 10_304, 11_800),
    ("person_detect", M0, 12_288, 14_400),
    ("tf2_mobilenet_v2_1.0_224_ptq", M7, 190_624, 203_000 + STACK),
)
"""Budgets of arenas, the least there are, and most bytes of RAM in all with the stack."""


@dataclass(frozen=True)
class Measured:
    report: Report
    footprint: Footprint


def export(model: Path, folder: Path, budget: int = 0) -> Path:
    within = ["--budget", str(budget)] if budget else []
    assert main(["export", str(model), "--to", "c", "-o", str(folder), *within]) == 0
    return folder


def measured(board: str, subject: Subject, inputs: bytes, folder: Path) -> Measured:
    target = board_named(board)
    if missing := target.missing():
        pytest.skip(f"needs tools: {missing}")
    program = build(target, subject, folder)
    found = Measured(run(program, inputs), footprint(program))
    line = f"stack {found.report.stack}, {found.report.instructions:,} instructions"
    print(f"{board}: {line}, {found.footprint}")  # noqa: T201  # shown where a test fails
    return found


def assert_small(found: Measured, *, library_variables: bool = False) -> None:
    found.report.require_sound()
    assert found.report.stack <= STACK
    assert found.footprint.variables == 0
    assert library_variables or (found.footprint.data, found.footprint.bss) == (0, 0)
    assert found.footprint.text <= TEXT
    assert found.report.instructions > 0


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """What makes a network's file and its C source, each once."""
    made: dict[str, tuple[Path, Path]] = {}

    def make(name: str) -> tuple[Path, Path]:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            model = folder / f"{name}.tflite"
            model.write_bytes(BY_NAME[name].make())
            made[name] = model, export(model, folder / "c", BY_NAME[name].budget)
        return made[name]

    return make


@pytest.mark.parametrize(
    ("network", "board"),
    [(each, board) for each in NETWORKS for board in each.boards],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_network_gives_the_reference_outputs(network, board, sources, tmp_path):
    model, folder = sources(network.name)
    inputs = random_inputs(model, RUNS)
    expected = joined(network.outputs(model, inputs))
    assert len({expected[n * len(expected) // RUNS :][:4] for n in range(RUNS)}) > 1
    found = measured(board, exported(folder), joined(inputs), tmp_path)
    if network.tolerance:
        ours, theirs = (
            np.frombuffer(each, np.float32) for each in (found.report.outputs, expected)
        )
        assert np.abs(ours - theirs).max() <= network.tolerance * np.abs(theirs).max()
    else:
        assert found.report.outputs == expected
    assert_small(found, library_variables=network.library_variables)


@pytest.mark.parametrize(
    ("board", "instructions"),
    [
        (M0, 3_805_000),
        (M3, 2_132_000),
        (M4, 1_388_000),
        (M7, 1_397_000),
        (M55, 1_323_000),
        (XTENSA, 3_069_000),
    ],
)
def test_an_inference_takes_no_more_instructions(sources, tmp_path, board, instructions):
    """The counts are of GCC 12.2; another may take 3 % more."""
    model, folder = sources("classifier")
    found = measured(board, exported(folder), joined(random_inputs(model, 1)), tmp_path)
    assert found.report.instructions <= 1.03 * instructions


@pytest.mark.parametrize("board", [M0, M55])
def test_optimised_for_speed_it_gives_the_same_bits(sources, tmp_path, board):
    model, folder = sources("classifier")
    inputs = random_inputs(model, RUNS)
    fast = measured(board, exported(folder, optimised=("-O3",)), joined(inputs), tmp_path / "3")
    small = measured(board, exported(folder, optimised=("-Os",)), joined(inputs), tmp_path / "s")
    assert fast.report.outputs == joined(tflm_outputs(model, inputs))
    assert fast.report.instructions < small.report.instructions


def test_a_network_fits_a_chip_that_the_interpreter_does_not(sources, tmp_path):
    tflm = pytest.importorskip("arenite.runtime.targets.tflm")
    model, folder = sources("classifier")
    arena = int(macro(folder, "ARENA_BYTES"))
    assert 10_000 < arena < 14_000
    assert tflm.measure_arena(model, 1, 1).smallest > board_named(M0).ram_bytes
    wide, folder = sources("detector")
    assert 40_000 < int(macro(folder, "ARENA_BYTES")) < 62_000
    assert tflm.measure_arena(wide, 1, 1).smallest > board_named(M3).ram_bytes
    with pytest.raises(BuildError):
        build(board_named(M0), exported(folder), tmp_path)


def test_in_bands_a_network_fits_a_chip_that_it_does_not_whole(sources, tmp_path):
    model, folder = sources("tall")
    whole = export(model, tmp_path / "c")
    assert int(macro(folder, "ARENA_BYTES")) <= BY_NAME["tall"].budget
    assert int(macro(whole, "ARENA_BYTES")) > 2 * board_named(M0).ram_bytes
    with pytest.raises(BuildError):
        build(board_named(M0), exported(whole), tmp_path)


def macro(folder: Path, name: str) -> str:
    """The value of a macro of the header."""
    others = ("_serial", "_external")
    (header,) = (each for each in folder.glob("*.h") if not each.stem.endswith(others))
    lines = header.read_text().splitlines()
    (value,) = (line.split()[2] for line in lines if line.startswith("#define") and
                f"_{line.split()[1]}".endswith(f"_{name}"))  # fmt: skip
    return value


def _changed(source: Path, array: str, folder: Path) -> Path:
    """A copy of a file in which the first number of an array is another, for cores without MVE."""
    text = source.read_text()
    number = re.search(rf"{array}[^;=]*= {{(?:[^}}]*#else)?\s*(-?\d+)", text)
    assert number is not None
    other = 100 if int(number[1]) <= 0 else -100
    copy = folder / source.name
    copy.write_text(f"{text[: number.start(1)]}{other}{text[number.end(1) :]}")
    return copy


def test_a_weight_that_differs_is_noticed(sources, tmp_path):
    model, folder = sources("classifier")
    inputs = random_inputs(model, RUNS)
    subject = exported(folder)
    changed = _changed(folder / "classifier_weights.c", "const int16_t", tmp_path)
    found = measured(M4, replace(subject, sources=[subject.sources[0], changed]),
                     joined(inputs), tmp_path / "board")  # fmt: skip
    assert found.report.outputs != joined(tflm_outputs(model, inputs))


def test_a_run_beyond_the_arena_is_noticed(sources, tmp_path):
    model, folder = sources("classifier")
    subject = exported(folder)
    less = replace(subject, arena_bytes=f"{subject.arena_bytes} - 64")
    report = run(build(board_named(M4), less, tmp_path), joined(random_inputs(model, 1)))
    assert report.canaries_harmed > 0


def test_the_first_run_needs_no_clean_arena_and_states_begin_anew(sources, tmp_path):
    model, folder = sources("keyword")
    inputs = random_inputs(model, RUNS)
    anew = replace(exported(folder), run="keyword_anew(arena)", header=tmp_path / "anew.h")
    (tmp_path / "anew.h").write_text(
        f'#include "{folder}/keyword.h"\nstatic inline int keyword_anew(uint8_t *arena)\n'
        "{ const int status = keyword_run(arena); keyword_reset(arena); return status; }\n"
    )
    report = measured(M4, anew, joined(inputs), tmp_path / "board").report
    assert report.outputs == joined([tflm_outputs(model, [each])[0] for each in inputs])
    assert report.outputs != joined(tflm_outputs(model, inputs))


@pytest.mark.parametrize("board", [M0, RISCV, XTENSA])
def test_the_exported_test_passes_and_notices_a_wrong_value(sources, tmp_path, board):
    model, folder = sources("classifier")
    subject = exported(folder)
    (tmp_path / "tested.h").write_text(
        f'#include "{folder}/classifier.h"\nint classifier_test(uint8_t *arena);\n'
    )
    tested = replace(
        subject,
        sources=[*subject.sources, folder / "classifier_test.c"],
        header=tmp_path / "tested.h",
        run="classifier_test(arena)",
        defines={**subject.defines, "CLASSIFIER_TEST_NO_MAIN": "1"},
        flags=(*subject.flags, f"-I{folder}"),
    )
    inputs = joined(random_inputs(model, 1))
    assert measured(board, tested, inputs, tmp_path / "right").report.runs == 1
    changed = _changed(folder / "classifier_test.c", "expected_", tmp_path)
    wrong = replace(tested, sources=[*subject.sources, changed])
    with pytest.raises(BoardError, match="says that it failed"):
        measured(board, wrong, inputs, tmp_path / "wrong")


@pytest.mark.parametrize("board", [M4, RISCV])
def test_a_system_runs_its_models_in_one_arena(sources, tmp_path, board):
    names, lines = ("classifier", "keyword"), []
    for name in names:
        lines += [f"[models.{name}]", f'path = "{sources(name)[0]}"']
    (tmp_path / "both.toml").write_text("\n".join(lines), encoding="utf-8")
    folder = export(tmp_path / "both.toml", tmp_path / "c")
    arenas = [int(macro(sources(name)[1], "ARENA_BYTES")) for name in names]
    assert max(arenas) <= int(macro(folder, "BOTH_ARENA_BYTES")) < sum(arenas)
    (tmp_path / "tested.h").write_text(
        f'#include "{folder}/both.h"\nint both_test(uint8_t *arena);\n'
    )
    subject = exported(folder)
    tested = replace(
        subject,
        sources=[folder / f"both{each}.c" for each in ("", "_weights", "_test")],
        header=tmp_path / "tested.h",
        run="both_test(arena)",  # runs both in turn, again and again, and checks all outputs
        arena_bytes="BOTH_ARENA_BYTES",
        arena_align="BOTH_ARENA_ALIGN",
        begin="(void)0",
        defines={"BOTH_STEP(i)": "counter_poll()", "BOTH_TEST_NO_MAIN": "1"},
        flags=(*subject.flags, f"-I{folder}"),
    )
    inputs = joined(random_inputs(sources("classifier")[0], 1))
    found = measured(board, tested, inputs, tmp_path / "board")
    found.report.require_sound()
    assert found.footprint.variables == 0


@pytest.mark.parametrize("board", [M4, M55, RVV])
def test_fetched_weights_give_the_reference_outputs(sources, tmp_path, board):
    model, _ = sources("classifier")
    options = ["--to", "c", "-o", str(tmp_path / "c"), "--weights", "80%"]
    assert main(["export", str(model), *options]) == 0
    (tmp_path / "c/external.c").write_text('#include "classifier_external.h"\n')
    subject = exported(tmp_path / "c")
    fetching = replace(subject, sources=[*subject.sources, tmp_path / "c/external.c"])
    inputs = random_inputs(model, RUNS)
    found = measured(board, fetching, joined(inputs), tmp_path / "board")
    assert found.report.outputs == joined(tflm_outputs(model, inputs))
    assert_small(found)
    assert int(macro(tmp_path / "c", "EXTERNAL_BYTES")) > 300


@pytest.mark.parametrize(("name", "board"), REAL)
def test_a_trained_model_gives_the_interpreters_outputs(name, board, tmp_path):
    model = shared(f"models/tflite/{name}.tflite")
    is_large = model.stat().st_size > 1 << 20
    inputs = random_inputs(model, 1 if is_large else TRAINED_RUNS)
    folder = export(model, tmp_path / "c")
    found = measured(board, exported(folder), joined(inputs), tmp_path / "board")
    assert found.report.outputs == joined(tflm_outputs(model, inputs))
    assert_small(found)
    if (name, board) in INSTRUCTIONS:
        assert found.report.instructions <= 1.03 * INSTRUCTIONS[name, board]


@pytest.mark.parametrize(("name", "board", "budget", "most"), BANDED)
def test_a_trained_model_in_bands_gives_them_too(name, board, budget, most, tmp_path):
    model = shared(f"models/tflite/{name}.tflite")
    inputs = random_inputs(model, 1)
    folder = export(model, tmp_path / "c", budget)
    found = measured(board, exported(folder), joined(inputs), tmp_path / "board")
    assert found.report.outputs == joined(tflm_outputs(model, inputs))
    assert_small(found)
    assert int(macro(folder, "ARENA_BYTES")) + found.report.stack <= most
