"""Systems of packages build an export and its application: themselves, or stand-ins for them.

The stand-ins read the same files and build for this machine. `make test-packages` installs what
of the systems can be installed; what is absent is skipped.
"""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from arenite.runtime.cexport.base.options import LARGE_WEIGHTS
from arenite.runtime.cexport.export import CExport
from support.exported_c import WARNINGS, Machine, compiled, drawn, exported, written
from support.quantised_chain import mobile

SYSTEMS = Path(__file__).parents[2] / "support" / "package_systems"


@pytest.fixture(scope="module", params=[LARGE_WEIGHTS, 1], ids=["text", "binary"])
def export(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> CExport:
    path = tmp_path_factory.mktemp("model") / "tiny.tflite"
    path.write_bytes(mobile())
    return exported(path, large_weights=request.param)


@pytest.fixture
def folder(export: CExport, tmp_path: Path) -> Path:
    return written(export, tmp_path / "tiny")


def line(export: CExport, outputs: Mapping[str, np.ndarray]) -> str:
    """Return what an application writes for the outputs of a run."""
    (port,) = export.interface.outputs
    values = outputs[port.port.name].reshape(-1)
    stated = port.tensor.quantisation
    assert stated is not None
    best = int(values.argmax())
    number = (int(values[best]) - stated.zero_point) * float(stated.scales[0])
    return f"{port.name} {best} {number:.3f}"


@pytest.fixture
def runs(export: CExport, tmp_path: Path) -> tuple[bytes, list[str]]:
    """Return the bytes of the inputs of some runs, and the lines that an application writes."""
    machine = Machine.of(export, compiled(export, tmp_path / "library"))
    given = [drawn(export, seed) for seed in range(3)]
    lines = [line(export, machine.run(inputs)) for inputs in given]
    assert len(set(lines)) > 1
    return b"".join(array.tobytes() for each in given for array in each.values()), lines


def check(program: Path, runs: tuple[bytes, list[str]]) -> None:
    done = subprocess.run([program], input=runs[0], capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == runs[1]


def run(*command: object, **given: str) -> str:
    environment = {**os.environ, **given}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}: run `make test-packages`")


def test_arduino_builds_the_sketch(
    folder: Path, tmp_path: Path, runs: tuple[bytes, list[str]]
) -> None:
    needs("arduino-builder")
    sketch = folder / "examples/serial/serial.ino"
    made = tmp_path / "made"
    made.mkdir()
    run("arduino-builder", "-compile", "-hardware", SYSTEMS / "arduino", "-tools", tmp_path,
        "-libraries", tmp_path, "-fqbn", "standin:host:host", "-build-path", made,
        "-warnings", "all", sketch)  # fmt: skip
    check(made / "serial.ino.elf", runs)


def test_the_sketch_is_plain_cpp(
    folder: Path, tmp_path: Path, runs: tuple[bytes, list[str]]
) -> None:
    core = SYSTEMS / "arduino/standin/host/cores/host"
    flags = ["-Wall", "-Wextra", "-Werror", "-DARDUINO=10819", f"-I{folder}", f"-I{core}"]
    objects = []
    for source in sorted(folder.glob("*.c")):
        objects.append(tmp_path / f"{source.stem}.o")
        run("gcc", *flags, "-c", source, "-o", objects[-1])
    sketch = folder / "examples/serial/serial.ino"
    run("g++", *flags, "-include", "Arduino.h", "-x", "c++", sketch, core / "main.cpp",
        "-x", "none", *objects, "-o", tmp_path / "app", "-lm")  # fmt: skip
    check(tmp_path / "app", runs)


def test_the_manifest_of_arduino_keeps_to_its_specification(folder: Path) -> None:
    lines = (folder / "library.properties").read_text().splitlines()
    stated = dict(each.split("=", 1) for each in lines if not each.startswith("#"))
    assert set(stated) == {
        "name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url",
        "architectures", "includes",
    }  # fmt: skip
    assert all(stated.values())
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}", stated["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", stated["version"])
    assert not stated["sentence"].lower().startswith("arduino")
    assert stated["category"] in {
        "Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing",
        "Data Storage", "Data Processing", "Other",
    }  # fmt: skip
    assert (folder / stated["includes"]).is_file()
    assert not (folder / "src").exists(), "sources in the folder itself: the flat layout"
    for sketch in (folder / "examples").rglob("*.ino"):
        assert sketch.stem == sketch.parent.name


SYSTEMS_OF_CMAKE = {"zephyr": "ZEPHYR_BASE", "esp_idf": "IDF_PATH"}


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize("system", SYSTEMS_OF_CMAKE)
def test_a_stand_in_builds_the_application(
    folder: Path, tmp_path: Path, runs: tuple[bytes, list[str]], system: str
) -> None:
    made, found = tmp_path / "made", {SYSTEMS_OF_CMAKE[system]: str(SYSTEMS / system)}
    run("cmake", "-S", folder / "examples" / system, "-B", made, "-DCMAKE_BUILD_TYPE=Release",
        f"-DZephyr_DIR={SYSTEMS / system}", **found)  # fmt: skip
    run("cmake", "--build", made, **found)
    check(made / "app", runs)


def test_esp_idf_builds_the_application(
    folder: Path, tmp_path: Path, runs: tuple[bytes, list[str]]
) -> None:
    """Its own build system, for this machine; it takes minutes, and a checkout of it."""
    needs("compote")
    if "IDF_PATH" not in os.environ:
        pytest.skip("needs ESP-IDF: run `make test-packages` with IDF_PATH set")
    made = tmp_path / "made"
    run("cmake", "-G", "Ninja", "-S", folder / "examples/esp_idf", "-B", made,
        "-DIDF_TARGET=linux", "-DPYTHON_DEPS_CHECKED=1",
        f"-DPYTHON={Path(shutil.which('compote') or '').with_name('python')}")  # fmt: skip
    run("ninja", "-C", made)
    with subprocess.Popen(
        [made / "tiny_serial.elf"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as application:
        assert application.stdin is not None
        assert application.stdout is not None
        application.stdin.write(runs[0])
        application.stdin.flush()
        found: list[str] = []
        while len(found) < len(runs[1]):  # behind what the system itself says
            said = application.stdout.readline().decode()
            assert said, "it ended"
            found += [said.strip()] if said.startswith("t") else []
        application.kill()
    assert found == runs[1]


def test_esp_idf_packs_it(folder: Path, tmp_path: Path) -> None:
    needs("compote")
    run("compote", "component", "pack", "--project-dir", folder, "--name", "tiny",
        "--dest-dir", tmp_path / "dist", IDF_COMPONENT_STRICT_CHECKS="1")  # fmt: skip
    assert (tmp_path / "dist/tiny_0.1.0.tgz").is_file()


def test_zephyr_reads_the_module(folder: Path) -> None:
    yaml = pytest.importorskip("yaml")
    module = yaml.safe_load((folder / "zephyr/module.yml").read_text())
    assert set(module) == {"name", "build", "samples"}
    assert (folder / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (folder / module["build"]["kconfig"]).is_file()
    (sample,) = module["samples"]
    assert (folder / sample / "sample.yaml").is_file()


def test_kconfig_switches_the_module_on(folder: Path, tmp_path: Path) -> None:
    needs("alldefconfig")
    run("alldefconfig", folder / "zephyr/Kconfig", KCONFIG_CONFIG=str(tmp_path / "config"))
    assert "CONFIG_TINY=y" in (tmp_path / "config").read_text()


def test_the_sources_that_platformio_compiles_are_the_library(
    export: CExport, folder: Path, tmp_path: Path
) -> None:
    stated = json.loads((folder / "library.json").read_text())
    build = stated["build"]
    first, *others = build["srcFilter"]
    assert first == "-<*>"
    names = [re.fullmatch(r"\+<(.+)>", each)[1] for each in others]  # type: ignore[index]
    sources = [folder / build["srcDir"] / name for name in names]
    library = tmp_path / "library.so"
    run("gcc", *WARNINGS, *build["flags"], "-fPIC", "-shared", f"-I{folder / build['includeDir']}",
        *sources, "-o", library, "-lm")  # fmt: skip
    Machine.of(export, library).run(drawn(export, 0))
    for header in stated["headers"]:
        assert (folder / header).is_file()
    for example in stated["examples"]:
        assert all((folder / example["base"] / name).is_file() for name in example["files"])


def test_platformio_packs_it(folder: Path, tmp_path: Path) -> None:
    needs("pio")
    run("pio", "pkg", "pack", folder, "-o", tmp_path / "tiny.tar.gz")
    assert (tmp_path / "tiny.tar.gz").is_file()


def test_the_pack_of_cmsis_names_files_that_are_there(folder: Path) -> None:
    description = folder / "Arenite.tiny.pdsc"
    pack = ElementTree.parse(description).getroot()
    vendor, name = pack.findtext("vendor"), pack.findtext("name")
    assert description.name == f"{vendor}.{name}.pdsc"
    (component,) = pack.findall("components/component")
    (release,) = pack.findall("releases/release")
    assert component.get("Cversion") == release.get("version")
    files = {each.get("name", ""): each.get("category") for each in component.iter("file")}
    assert {"sourceC", "header", "include"} == set(files.values())
    assert all((folder / each).exists() for each in files)
    assert {each for each in files if each.endswith(".c")} == {"tiny.c", "tiny_weights.c"}


def test_the_pack_of_cmsis_keeps_to_its_schema(folder: Path) -> None:
    needs("xmlschema-validate")
    if "PACK_XSD" not in os.environ:
        pytest.skip("needs PACK.xsd: run `make test-packages` with its path as PACK_XSD")
    run("xmlschema-validate", "--schema", os.environ["PACK_XSD"], folder / "Arenite.tiny.pdsc")


@pytest.mark.parametrize(
    ("limit", "fits"), [("RAM_LIMIT={ram}", True), ("RAM_LIMIT={ram} - 1", False),
                        ("FLASH_LIMIT={flash}", True), ("FLASH_LIMIT={flash} - 1", False)],
)  # fmt: skip
@pytest.mark.parametrize("standard", ["-std=c99", "-std=c11"])
def test_a_board_with_too_little_memory_is_a_compile_error(
    folder: Path, tmp_path: Path, limit: str, fits: bool, standard: str
) -> None:
    limit = limit.format(
        ram="(TINY_ARENA_BYTES + TINY_STACK_BYTES)", flash="(TINY_WEIGHT_BYTES + TINY_CODE_BYTES)"
    )
    done = subprocess.run(
        ["gcc", standard, "-Wall", "-Wextra", f"-DTINY_{limit}", "-c", folder / "tiny.c",
         "-o", tmp_path / "tiny.o"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) == fits
    assert fits or "_fit" in done.stderr


def test_every_template_is_filled(export: CExport) -> None:
    for name, data in export.files.items():
        text = name + ("" if name.endswith(".bin") else data.decode())
        assert "modelname" not in text.lower()
        assert not re.search(r"@[a-z_]+@", text)
