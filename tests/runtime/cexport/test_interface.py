"""What is written: names, macros, text for compilers of C and C++, and the same each time."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arenite.runtime.cexport import kernels
from arenite.runtime.cexport.base.layout import Interface
from arenite.runtime.cexport.base.options import Vectors
from arenite.runtime.cexport.base.text import component_name, distinct, identifier
from arenite.runtime.cexport.export import CExport
from support.exported_c import WARNINGS, Machine, compiled, drawn, exported, written
from support.quantised_chain import mobile, residual


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "Tiny network-2.tflite"
    path.write_bytes(mobile())
    return path


@pytest.fixture
def export(path: Path) -> CExport:
    return exported(path)


def macros(export: CExport) -> dict[str, str]:
    text = export.files[f"{export.name}.h"].decode()
    return dict(re.findall(r"#define (\w+) (.+)", text))


def test_the_same_model_gives_the_same_bytes(path: Path, export: CExport) -> None:
    assert exported(path).files == export.files


def test_the_header_states_sizes_places_and_scales(export: CExport) -> None:
    stated, prefix = macros(export), "TINY_NETWORK_2"
    assert export.name == "tiny_network_2"
    assert stated[f"{prefix}_ARENA_BYTES"] == str(export.arena_bytes)
    assert stated[f"{prefix}_ARENA_ALIGN"] == "4"
    assert stated[f"{prefix}_PLAN_DIGEST"] == f'"{export.digest}"'
    assert stated[f"{prefix}_ROUNDING"] == '"double"'
    assert stated[f"{prefix}_NUM_INPUTS"] == "1"
    assert stated[f"{prefix}_INPUT_T0_BYTES"] == str(24 * 24 * 3)
    assert stated[f"{prefix}_INPUT_T0_DIMS"] == "{1, 24, 24, 3}"
    assert stated[f"{prefix}_INPUT_T0_SCALE"] == "0.0500000007f"
    assert stated[f"{prefix}_INPUT_T0_ZERO_POINT"] == "-3"


@pytest.mark.parametrize(
    ("compiler", "standard"),
    [("gcc", "-std=c99"), ("gcc", "-std=c11"), ("clang", "-std=c99"), ("g++", "-std=c++11"),
     ("clang++", "-std=c++11")],
)  # fmt: skip
def test_compilers_have_nothing_to_say(
    export: CExport, tmp_path: Path, compiler: str, standard: str
) -> None:
    compiled(export, tmp_path / "c", "-O2", compiler=compiler, standard=standard)


def test_an_arena_that_is_null_or_not_aligned_is_refused(export: CExport, tmp_path: Path) -> None:
    machine = Machine.of(export, compiled(export, tmp_path / "c"))
    assert machine.run_on(None) == 1
    assert machine.run_on(machine.arena.ctypes.data + 1) == 1


def test_hooks_are_called_behind_each_step_and_where_the_arena_is_wrong(
    export: CExport, tmp_path: Path
) -> None:
    folder = written(export, tmp_path / "c")
    (folder / "hooks.h").write_text(
        '#include <stdio.h>\n#define TINY_NETWORK_2_STEP(i) printf("step %d\\n", i)\n'
        '#define TINY_NETWORK_2_ASSERT(c) do { if (!(c)) printf("broken\\n"); } while (0)\n'
    )
    (folder / "main.c").write_text(
        f'#include "{export.name}.h"\n#include <stddef.h>\n'
        f"static union {{ uint8_t bytes[TINY_NETWORK_2_ARENA_BYTES]; int64_t a; }} arena;\n"
        f"int main(void) {{ {export.name}_run(NULL); return {export.name}_run(arena.bytes); }}\n"
    )
    sources = [f"{export.name}.c", f"{export.name}_weights.c", "main.c"]
    subprocess.run(
        ["gcc", "-std=c99", "-include", "hooks.h", *sources, "-o", "main", "-lm"],
        cwd=folder, check=True,
    )  # fmt: skip
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    steps = [f"step {number}" for number in range(export.interface.num_steps)]
    assert done.stdout.splitlines() == ["broken", *steps]


def test_nothing_static_can_change(export: CExport, tmp_path: Path) -> None:
    folder = written(export, tmp_path / "c")
    for source in (f"{export.name}.c", f"{export.name}_weights.c"):
        subprocess.run(["gcc", "-std=c99", "-c", source, "-o", f"{source}.o"], cwd=folder,
                       check=True)  # fmt: skip
        text = subprocess.run(["size", "-A", f"{source}.o"], cwd=folder, check=True,
                              capture_output=True, text=True).stdout  # fmt: skip
        sizes = dict(re.findall(r"^(\.(?:data|bss))\s+(\d+)", text, re.MULTILINE))
        assert set(sizes.values()) == {"0"}


def test_single_rounding_is_recorded_and_rounds_another_way(path: Path, tmp_path: Path) -> None:
    exports = {name: exported(path, rounding=name) for name in ("double", "single")}
    assert macros(exports["single"])["TINY_NETWORK_2_ROUNDING"] == '"single"'
    texts = {name: each.files["tiny_network_2.c"].decode() for name, each in exports.items()}
    assert "#define SINGLE_ROUNDING 1" in texts["single"]
    assert "#define SINGLE_ROUNDING 0" in texts["double"]
    machines = {
        name: Machine.of(each, compiled(each, tmp_path / name)) for name, each in exports.items()
    }
    inputs = drawn(exports["double"], 0)
    (one,), (other,) = (machines[name].run(inputs).values() for name in ("double", "single"))
    assert np.abs(one.astype(int) - other.astype(int)).max() <= 3


def test_large_weights_are_a_binary_file_with_the_same_results(path: Path, tmp_path: Path) -> None:
    plain, large = exported(path), exported(path, large_weights=100)
    assert "tiny_network_2_weights.bin" in large.files
    assert "tiny_network_2_weights.bin" not in plain.files
    machines = [
        Machine.of(each, compiled(each, tmp_path / str(number)))
        for number, each in enumerate((plain, large))
    ]
    inputs = drawn(plain, 3)
    (one,), (other,) = (machine.run(inputs).values() for machine in machines)
    np.testing.assert_array_equal(one, other)


def with_vectors(path: Path, tmp_path: Path, shift: int) -> CExport:
    """Return an export whose test expects its own outputs, off by some units."""
    from arenite.pipeline.targets.c import compile_for_c
    from arenite.runtime.cexport.base.options import COptions
    from arenite.runtime.cexport.export import export_c
    from arenite.strategies import find

    first = exported(path)
    machine = Machine.of(first, compiled(first, tmp_path / "first"))
    vectors = Vectors(drawn(first, 0), (), "itself")
    outputs = tuple(
        {name: array + np.int8(shift) for name, array in machine.run(inputs).items()}
        for inputs in map(vectors.inputs_of, range(3))
    )
    model = compile_for_c(path)

    def checked(_: Interface) -> Vectors:
        return replace(vectors, outputs=outputs)

    return export_c(model, find("best")(model.source.problem), COptions(), checked)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("shift", [0, 1])
def test_make_check_tells_right_outputs_from_wrong_ones(
    path: Path, tmp_path: Path, shift: int
) -> None:
    export = with_vectors(path, tmp_path, shift)
    folder = written(export, tmp_path / "made")
    done = subprocess.run(["make", "check"], cwd=folder, capture_output=True, text=True,
                          check=False)  # fmt: skip
    count = 3 * export.interface.outputs[0].tensor.num_elements
    assert f"tiny_network_2: {count if shift else 0} wrong" in done.stdout
    assert (done.returncode == 0) == (shift == 0)


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_builds_and_tests_it(path: Path, tmp_path: Path) -> None:
    folder = written(with_vectors(path, tmp_path, 0), tmp_path / "made")
    for command in (["cmake", "-S", folder, "-B", "build"], ["cmake", "--build", "build"],
                    ["ctest", "--test-dir", "build"]):  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed" in done.stdout


def test_only_kernels_that_are_called_are_in_it(tmp_path: Path) -> None:
    path = tmp_path / "residual.tflite"
    path.write_bytes(residual())
    export = exported(path)
    text = export.files["residual.c"].decode()
    defined = set(re.findall(r"^KERNEL (\w+)\(", text, re.MULTILINE))
    assert defined == set(export.kernels)
    assert "add_s8" in defined
    assert "depthwise_s8" not in defined


def test_every_kernel_has_the_fields_that_are_read_from_it() -> None:
    assert list(kernels.fields("pool_layer"))[:2] == ["height", "width"]
    assert list(kernels.fields("conv_layer").items())[-1] == ("shifts", "const int8_t")
    assert kernels.fields("conv_layer")["kernel_x"] == "int16_t"
    with pytest.raises(KeyError):
        kernels.fields("no_layer")


def test_kernels_have_distinct_names(tmp_path: Path) -> None:
    own = [name for name in kernels.names() if "arm_" not in kernels.bundle([name])]
    text = kernels.bundle(own)
    macros = "".join(f"#define {name} 0\n" for name in kernels.features_of(text))
    (tmp_path / "all.c").write_text(
        "#include <float.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
        f"#include <string.h>\n{macros}{text}"
    )
    command = ["gcc", "-std=c99", *WARNINGS, "-Wno-unused-function", "-c", "all.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_names_become_identifiers_no_two_alike() -> None:
    assert identifier("MobileNet v1/0.5") == "mobilenet_v1_0_5"
    assert identifier("9lives") == "model_9lives"
    assert identifier("") == "model"
    assert identifier("for") == "for_"
    assert identifier("not") == "not_"
    assert identifier("time") == "time"
    assert component_name("Time") == "time_"
    assert distinct(["a:0", "a/0", "a_0"], "input") == ("a_0", "a_0_2", "a_0_3")


def test_kernels_of_a_family_are_written_with_their_own_words() -> None:
    one, other = (
        text[text.rindex("/* A function") :]
        for text in (kernels.bundle(["maximum_f32"]), kernels.bundle(["minimum_f32"]))
    )
    assert "x > z ? x : z" in one
    assert one.replace("x > z", "x < z").replace("maximum", "minimum") == other
    assert {"times", "memory"} <= set(kernels.fields("svdf_layer_s16"))
    for name in ("add_f32", "arg_s8_64", "svdf_s8", "maximum_of_f32", "average_pool_by_rows_s8"):
        assert f"KERNEL {name}(" in kernels.bundle([name])
        assert "One for each of" not in kernels.bundle([name])
