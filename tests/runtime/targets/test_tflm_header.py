import shutil
import subprocess
from pathlib import Path

import pytest

from arenite.runtime.targets.tflm import c_header, export_tflm
from arenite.strategies import find
from support.tiny_chains import dense_chain
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

COMPILERS = [("gcc", "c11", "c"), ("g++", "c++11", "cc")]


def header(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return c_header(export_tflm(path, find("best"), find("tflm")))


def compiles(folder: Path, text: str, arena_bytes: str, compiler: tuple[str, str, str]) -> bool:
    program, standard, suffix = compiler
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    (folder / "m.h").write_text(text)
    source = folder / f"m.{suffix}"
    source.write_text(
        f'#include "m.h"\n#include "m.h"\nstatic uint8_t arena[{arena_bytes}];\n'
        "MODEL_1_NET_CHECK_ARENA(arena);\n"
        "int main(void) { return arena[0] + MODEL_1_NET_HEAD_BYTES - MODEL_1_NET_HEAD_BYTES; }\n"
    )
    command = [program, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    return subprocess.run([*command, source], capture_output=True, check=False).returncode == 0


@pytest.fixture
def chain(tmp_path: Path) -> str:
    pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")
    return header(tmp_path / "1-net.tflite", dense_chain())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_it_compiles_and_its_check_refuses_a_smaller_arena(
    tmp_path: Path, chain: str, compiler: tuple[str, str, str]
):
    assert compiles(tmp_path, chain, "MODEL_1_NET_ARENA_BYTES", compiler)
    assert not compiles(tmp_path, chain, "MODEL_1_NET_ARENA_BYTES - 1", compiler)


def test_it_states_the_head_and_maps_every_tensor(chain: str):
    assert "#define MODEL_1_NET_HEAD_BYTES 384\n" in chain
    rows = [line.split() for line in chain.splitlines() if line.startswith(" * ") and "[" in line]
    assert sorted(row[-1] for row in rows) == ["x0", "x1", "x2", "x3"]


def test_the_buffer_plan_lists_the_tensors_in_the_order_of_the_file(chain: str):
    entries = chain[chain.index("BUFFER_PLAN = {") :].split("{")[2].split("}")[0]
    offsets = [int(entry) for entry in entries.split(",") if entry.strip()]
    mapped = {
        line.split()[-1]: int(line.split()[1]) for line in chain.splitlines() if ")  x" in line
    }
    assert offsets == [mapped[name] for name in ("x0", "x1", "x2", "x3")]


def test_without_a_measurement_there_is_no_buffer_plan_and_it_says_so(tmp_path: Path, without):
    without("tflite_micro")
    text = header(tmp_path / "1-net.tflite", dense_chain())
    assert "No BufferPlan" in text
    assert "was not measured" in text


def test_a_hostile_name_stays_within_its_comment(tmp_path: Path, without):
    without("tflite_micro")
    tensors = [TinyTensor("x*/ int y; /*\n#error \\"), TinyTensor("z")]
    operators = [TinyOperator("Any", [0], [1])]
    text = header(
        tmp_path / "1-net.tflite", tiny_tflite(TinySubgraph(tensors, operators, [0], [1]))
    )
    assert compiles(tmp_path, text, "MODEL_1_NET_ARENA_BYTES", COMPILERS[0])
