"""Steps left to CMSIS-NN: what is called, in which memory, and what the bits are.

Most tests run on a double of it, whose functions refuse operands, results and working memory that
overlap; those of buffers and bits run on your own CMSIS-NN too, where `ARENITE_CMSIS_NN` says that
it is.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.planner.sizes import Dimension
from arenite.runtime.cexport.base.options import Extension
from arenite.runtime.cexport.export import CExport
from arenite.runtime.cexport.steps.cmsis_nn_operators import (
    CmsisWindows,
    average_pool_buffer,
    convolution_buffer,
    depthwise_buffer,
    fully_connected_buffer,
)
from support.exported_c import (
    DOUBLE,
    MACROS,
    Double,
    Machine,
    Micro,
    best_order,
    compiled,
    drawn,
    exported,
    own,
    own_library,
)
from support.operator_models import S8, U8, binary, conv, dense, depthwise, pool, softmax
from support.quantised_chain import mobile, residual
from support.shared_material import shared
from support.tiny_onnx import parse, save, with_random_weights

NONE, DSP, MVE = Extension.NONE, Extension.DSP, Extension.MVE


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Double:
    return Double(tmp_path_factory.mktemp("double"))


def of(data: bytes, folder: Path, extension: Extension) -> CExport:
    """Return a model of these bytes for CMSIS-NN."""
    path = folder / "network.tflite"
    path.write_bytes(data)
    return exported(path, extension=extension)


def assert_the_interpreters_bits(export: CExport, library: Path, path: Path, runs: int) -> None:
    machine, oracle = Machine.of(export, library), Micro(path)
    for seed in range(runs):
        inputs = drawn(export, seed)
        (expected,) = oracle.run(list(inputs.values()))
        (found,) = machine.run(inputs).values()
        np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@pytest.mark.parametrize("extension", Extension)
@pytest.mark.parametrize("network", [mobile, residual])
def test_a_network_gives_the_interpreters_bits(
    network: Callable[[], bytes], extension: Extension, tmp_path: Path, double: Double
) -> None:
    export = of(network(), tmp_path, extension)
    library = double.library(export, tmp_path / "c", extension)
    assert_the_interpreters_bits(export, library, tmp_path / "network.tflite", 3)


OPERATORS: dict[str, tuple[Callable[[], bytes], Extension, str]] = {
    "conv of a stride": (lambda: conv(stride=2, activation=3), MVE, "cmsis_conv_s8"),
    "conv, dilated": (lambda: conv(dilation=2), NONE, "cmsis_conv_s8"),
    "conv of a batch, one scale": (
        lambda: conv(batch=3, per_channel=False), DSP, "cmsis_conv_s8"
    ),
    "conv, in groups": (lambda: conv(depth=(6, 6), groups=2), NONE, "cmsis_conv_s8"),
    "depthwise of twos": (lambda: depthwise(depth=3, multiplier=2), DSP, "cmsis_depthwise_s8"),
    "depthwise, dilated": (lambda: depthwise(dilation=2), NONE, "cmsis_depthwise_s8"),
    "depthwise, one channel": (lambda: depthwise(depth=1, multiplier=6), MVE, "cmsis_conv_s8"),
    "dense": (lambda: dense(activation=1), MVE, "cmsis_fully_connected_s8"),
    "dense without bias": (lambda: dense(with_bias=False), NONE, "cmsis_fully_connected_s8"),
    "average": (lambda: pool("AVERAGE_POOL_2D", S8, 0, 1, 3), DSP, "cmsis_average_pool_s8"),
    "maximum": (lambda: pool("MAX_POOL_2D", S8, activation=1), MVE, "cmsis_max_pool_s8"),
    "multiply": (lambda: binary("MUL", S8, (1, 4, 5, 3), (1, 4, 5, 3), 3), NONE,
                 "cmsis_multiply_s8"),
    "softmax of many": (lambda: softmax(S8, 900), NONE, "cmsis_softmax_s8"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_gives_the_interpreters_bits(
    name: str, tmp_path: Path, double: Double
) -> None:
    make, extension, kernel = OPERATORS[name]
    export = of(make(), tmp_path, extension)
    assert export.kernels == (kernel,)
    library = double.library(export, tmp_path / "c", extension)
    assert_the_interpreters_bits(export, library, tmp_path / "network.tflite", 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: conv(U8),  # its filter has a zero point
        lambda: pool("AVERAGE_POOL_2D", U8),
        lambda: binary("ADD", S8, (1, 4, 5, 3), (3,)),
        lambda: binary("SUB", S8, (2, 30), (2, 30)),
        lambda: conv("float32"),
    ],
)
def test_what_it_has_no_kernel_for_is_left_to_ours(
    make: Callable[[], bytes], tmp_path: Path
) -> None:
    export = of(make(), tmp_path, NONE)
    assert not any(kernel.startswith("cmsis") for kernel in export.kernels)
    assert b"arm_nnfunctions" not in export.files["network.c"]
    assert b"cmsis" not in export.files["network.h"].lower()


def test_a_row_that_ends_before_its_last_column_is_left_to_ours_on_vectors(tmp_path: Path) -> None:
    """CMSIS-NN's kernel of one row takes the last window there for one that reaches beyond it."""

    def row() -> bytes:
        return conv(size=(1, 10), window=(1, 3), depth=(4, 6), stride=2, padding=1)

    assert of(row(), tmp_path, MVE).kernels == ("conv_pairs_s8",)
    assert of(row(), tmp_path, DSP).kernels == ("cmsis_conv_s8",)


def test_the_header_says_what_it_is_for(tmp_path: Path) -> None:
    header = of(mobile(), tmp_path, DSP).files["network.h"].decode()
    assert '#define NETWORK_KERNELS "cmsis-nn"' in header
    assert '#define NETWORK_EXTENSION "dsp"' in header
    assert "or 2 where CMSIS-NN refuses a step" in header
    assert "cmsis" not in exported(tmp_path / "network.tflite").files["network.h"].decode()


def test_no_result_reaches_into_an_operand(tmp_path: Path) -> None:
    """Where ours do, the arena is below what any plan without it needs."""
    ours = exported(_written(mobile(), tmp_path))
    assert of(mobile(), tmp_path, NONE).arena_bytes > ours.arena_bytes


def _written(data: bytes, folder: Path) -> Path:
    path = folder / "network.tflite"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("planned", "compiled_for", "words"),
    [
        (NONE, DSP, "export the model with --extension dsp"),
        (NONE, MVE, "export the model with --extension mve"),
        (DSP, MVE, "export the model with --extension mve"),
        (MVE, NONE, "exported with --extension mve"),
    ],
)
def test_another_kind_of_processor_is_refused_when_it_is_compiled(
    planned: Extension, compiled_for: Extension, words: str, tmp_path: Path
) -> None:
    export = of(dense(), tmp_path, planned)
    said = _refused(export, tmp_path, *MACROS[compiled_for])
    assert words in said


def test_a_library_that_rounds_once_is_refused_when_it_is_compiled(tmp_path: Path) -> None:
    said = _refused(of(dense(), tmp_path, NONE), tmp_path, "-DCMSIS_NN_USE_SINGLE_ROUNDING")
    assert "the model is rounded twice" in said


def _refused(export: CExport, folder: Path, *flags: str) -> str:
    for name in ("network.c", "network.h"):
        (folder / name).write_bytes(export.files[name])
    done = subprocess.run(
        ["gcc", "-std=c99", f"-I{DOUBLE}", *flags, "-c", folder / "network.c", "-o", "/dev/null"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(("compiler", "standard"), [("clang", "-std=c99"), ("g++", "-std=c++11")])
def test_compilers_have_nothing_to_say(tmp_path: Path, compiler: str, standard: str) -> None:
    export = of(mobile(), tmp_path, MVE)
    compiled(
        export, tmp_path / "c", f"-I{DOUBLE}", *MACROS[MVE], compiler=compiler, standard=standard
    )


def test_a_refusal_of_it_ends_the_run(tmp_path: Path) -> None:
    export = of(dense(), tmp_path, NONE)
    refusing = tmp_path / "refusing.c"
    refusing.write_text(
        "int arm_fully_connected_wrapper_s8(void);\n"
        "int arm_fully_connected_wrapper_s8(void) { return -1; }\n"
    )
    library = compiled(export, tmp_path / "c", f"-I{DOUBLE}", objects=[_object(refusing)])
    machine = Machine.of(export, library)
    assert machine.run_on(machine.arena.ctypes.data) == 2


def _object(source: Path) -> Path:
    path = source.with_suffix(".o")
    subprocess.run(["gcc", "-fPIC", "-c", source, "-o", path], check=True)
    return path


CONV = CmsisWindows(source=(1, 9, 7, 5), result=(1, 9, 7, 6), kernel=(3, 3), padding=(1, 1, 1, 1))
PIXEL = CmsisWindows(source=(1, 9, 7, 5), result=(1, 9, 7, 6), kernel=(1, 1))
GROUPS = CmsisWindows(source=(1, 9, 7, 6), result=(1, 9, 7, 6), kernel=(1, 1), groups=2)
ROW = CmsisWindows(source=(1, 1, 20, 8), result=(1, 1, 10, 6), kernel=(1, 5), strides=(1, 2),
              padding=(0, 2, 0, 1))  # fmt: skip
SHORT_ROW = CmsisWindows(
    source=(1, 1, 2, 8), result=(1, 1, 2, 6), kernel=(1, 5), padding=(0, 2, 0, 2)
)
CHANNELS = CmsisWindows(
    source=(1, 9, 7, 6), result=(1, 9, 7, 6), kernel=(3, 3), padding=(1, 1, 1, 1)
)
WIDE = CmsisWindows(source=(1, 9, 7, 6), result=(1, 9, 7, 6), kernel=(5, 5),
    padding=(2, 2, 2, 2))  # fmt: skip
TWOS = CmsisWindows(source=(1, 9, 7, 6), result=(1, 9, 7, 12), kernel=(3, 3),
    padding=(1, 1, 1, 1))  # fmt: skip
DILATED = CmsisWindows(source=(1, 9, 7, 6), result=(1, 9, 7, 6), kernel=(3, 3), dilations=(2, 2),
                  padding=(2, 2, 2, 2))  # fmt: skip

CONVOLUTIONS = [
    # 45 bytes a window: two of 48 in 16 bits, four in vectors of 16.
    (CONV, 192, 192, 192),
    (PIXEL, 0, 0, 0),
    (GROUPS, 32, 32, 64),
    # 40 bytes a window: one of them with 8 on the left; 4 pixels of it with 2 windows' 8 behind.
    (ROW, 160, 160, 48),
    (SHORT_ROW, 160, 160, 192),
]
DEPTHWISE = [(CHANNELS, 0, 0, 4464), (WIDE, 0, 300, 12400), (TWOS, 0, 0, 0), (DILATED, 0, 0, 0)]


@pytest.mark.parametrize(("windows", "none", "dsp", "mve"), CONVOLUTIONS)
def test_working_memory_of_convolutions(
    windows: CmsisWindows, none: int, dsp: int, mve: int
) -> None:
    assert [convolution_buffer(windows, each) for each in Extension] == [none, dsp, mve]


@pytest.mark.parametrize(("windows", "none", "dsp", "mve"), DEPTHWISE)
def test_working_memory_of_depthwise_convolutions(
    windows: CmsisWindows, none: int, dsp: int, mve: int
) -> None:
    assert [depthwise_buffer(windows, each) for each in Extension] == [none, dsp, mve]


def test_working_memory_of_products_and_averages() -> None:
    assert [fully_connected_buffer(10, each) for each in Extension] == [0, 0, 40]
    assert [average_pool_buffer(5, each) for each in Extension] == [0, 20, 0]


_ASKING = """
#include <arm_nnfunctions.h>
#include <stdio.h>
int main(void) {
"""


def test_working_memory_is_what_cmsis_nn_asks_for(tmp_path: Path) -> None:
    library = own_library("host")
    lines, wanted = [_ASKING], []
    for kind, cases in (("convolve", CONVOLUTIONS), ("depthwise_conv", DEPTHWISE)):
        for windows, none, dsp, mve in cases:
            if windows.groups > 1:
                continue  # 7.0.0 asks for less than it then takes
            lines.append(_asked(kind, windows))
            wanted += [none, dsp, mve]
    (tmp_path / "asking.c").write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(
        ["gcc", f"-I{own() / 'Include'}", "asking.c", library, "-o", "asking"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    said = subprocess.run([tmp_path / "asking"], capture_output=True, text=True, check=True)
    assert list(map(int, said.stdout.split())) == wanted


def _asked(kind: str, windows: CmsisWindows) -> str:
    """Return C that prints what a kind of convolution needs, for each extension."""

    def dims(*values: int) -> str:
        return "{" + ", ".join(map(str, values)) + "}"

    inputs, outputs = windows.source[3], windows.result[3]
    filter_ = (outputs, *windows.kernel, inputs)
    multiple = ""
    if kind == "depthwise_conv":
        filter_, multiple = (1, *windows.kernel, outputs), f"{outputs // inputs}, "
    params = f"cmsis_nn_{'dw_' if multiple else ''}conv_params"
    stated = (
        f"{{3, 4, {multiple}{dims(*windows.strides[::-1])}, "
        f"{dims(windows.padding[3], windows.padding[0])}, {dims(*windows.dilations[::-1])}, "
        "{-128, 127}}"
    )
    lines = [
        "{",
        f"const {params} params = {stated};",
        f"const cmsis_nn_dims in = {dims(*windows.source)}, filter = {dims(*filter_)}, "
        f"out = {dims(*windows.result)};",
    ]
    for suffix in ("", "_dsp", "_mve"):
        function = f"arm_{kind}_wrapper_s8_get_buffer_size{suffix}"
        lines.append(f'printf("%d\\n", (int){function}(&params, &in, &filter, &out));')
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize("name", [*OPERATORS, "mobile", "residual"])
def test_your_own_cmsis_nn_gives_the_interpreters_bits(name: str, tmp_path: Path) -> None:
    networks = {"mobile": mobile, "residual": residual}
    make = networks[name] if name in networks else OPERATORS[name][0]
    library = own_library("host")
    export = of(make(), tmp_path, NONE)
    shared_library = compiled(
        export, tmp_path / "c", "-isystem", str(own() / "Include"), objects=[library]
    )
    assert_the_interpreters_bits(export, shared_library, tmp_path / "network.tflite", 4)


@pytest.mark.parametrize(
    "name", ["vww_96_int8", "kws_ref_model", "pretrainedResnet_quant", "person_detect"]
)
def test_your_own_cmsis_nn_runs_published_models(name: str, tmp_path: Path) -> None:
    library = own_library("host")
    path = shared(f"models/tflite/{name}.tflite")
    export = exported(path, order=best_order(), extension=NONE)
    assert sum(kernel.startswith("cmsis") for kernel in export.kernels) >= 3
    include = ("-isystem", str(own() / "Include"))
    shared_library = compiled(export, tmp_path / "c", *include, objects=[library])
    assert_the_interpreters_bits(export, shared_library, path, 10)


def test_what_it_is_handed_lies_where_the_plan_says(tmp_path: Path) -> None:
    """Each call names an operand, a result and working memory of its own."""
    text = of(mobile(), tmp_path, MVE).files["network.c"].decode()
    calls = re.findall(r"if \(cmsis_(?:conv|depthwise)_s8\((.*)\) !=", text)
    assert calls
    for call in calls:
        _, source, result, buffer = call.split(", ")
        assert len({source, result, buffer}) == 3


QUANTISED = """(float[1,3,h,12] x) => (y)
    <float s = {0.02}, int8 z = {3}, float q = {0.004}, int8 o = {0}, int8[8,3,3,3] u,
    int8[8,1,3,3] w, int8[8,8,1,1] v> {
    a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z)
    c = DequantizeLinear(u, q, o) d = Conv<pads=[1,1,1,1], strides=[2,2]>(b, c)
    e = QuantizeLinear(d, s, z) f = DequantizeLinear(e, s, z)
    g = DequantizeLinear(w, q, o) i = Conv<group=8, pads=[1,1,1,1]>(f, g)
    j = QuantizeLinear(i, s, z) k = DequantizeLinear(j, s, z)
    l = DequantizeLinear(v, q, o) m = Conv(k, l) n = QuantizeLinear(m, s, z)
    p = DequantizeLinear(n, s, z) r = Add(p, f) t = QuantizeLinear(r, s, z)
    y = DequantizeLinear(t, s, z) }"""


@pytest.mark.parametrize("extension", Extension)
def test_a_range_of_sizes_has_the_bits_of_each_size(
    extension: Extension, double: Double, tmp_path: Path
) -> None:
    path = save(tmp_path, with_random_weights(parse(QUANTISED)))

    def machine(size: int | Dimension) -> Machine:
        reading = Reading({"h": size})
        export = exported(path, extension=extension, reading=reading, rounding="double")
        assert {"cmsis_conv_s8", "cmsis_depthwise_s8", "cmsis_add_s8"} <= set(export.kernels)
        return Machine.of(export, double.library(export, tmp_path / str(size), extension))

    ranged = machine(Dimension("h", 1, 20))
    for h in (20, 1, 7):
        fixed = machine(h)
        inputs = drawn(fixed.export, h)
        expected = fixed.run(inputs)["y"]
        np.testing.assert_array_equal(ranged.run(inputs, {"h": h})["y"], expected)
