"""What the documentation shows is what the commands do."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from doctest import ELLIPSIS, OutputChecker
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from click import MissingParameter

from arenite.cli.group import GLANCE, commands
from arenite.cli.main import main
from arenite.planner.rewrites.aliasing import AliasKind
from harness.inputs import zoo_file
from support.named_mobilenet import write as write_mobilenet
from support.shared_material import shared

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = sorted(
    page for page in (ROOT / "README.md", *DOCS.rglob("*.md")) if EXAMPLES not in page.parents
)


@cache
def made_models() -> Path:
    """Return a folder with a network of random weights and images to train it on."""
    folder = Path(tempfile.mkdtemp(prefix="arenite-docs-"))
    write_mobilenet(folder / "mobilenet_v2.onnx")
    images = np.random.default_rng(0).standard_normal((8, 3, 224, 224), np.float32)
    np.savez(folder / "photos.npz", image=images, labels=np.arange(8) % 4)
    return folder


_LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
_MODELS = {
    "worked-example.csv": lambda: EXAMPLES / "worked-example.csv",
    "mobilenet_v2.onnx": lambda: made_models() / "mobilenet_v2.onnx",
    "photos.npz": lambda: made_models() / "photos.npz",
    "small_mobilenet.onnx": lambda: of_zoo("mobilenet-v1-0.25-96"),
    "densenet121.onnx": lambda: _LIGHT / "light_densenet121.onnx",
    "shufflenet.onnx": lambda: _LIGHT / "light_shufflenet.onnx",
    "squeezenet.onnx": lambda: _LIGHT / "light_squeezenet.onnx",
    "mobilenet_v1_0.5_160_quant.tflite": lambda: shared(
        "models/tflite/mobilenet_v1_0.5_160_quant.tflite"
    ),
    "silero_vad_16k_op15.onnx": lambda: shared("models/onnx/silero_vad_16k_op15.onnx"),
    "ultraface_rfb320.onnx": lambda: shared("models/onnx/ultraface_rfb320.onnx"),
    "vww_96_int8.tflite": lambda: shared("models/tflite/vww_96_int8.tflite"),
}
COMMANDS = dict(commands())
BEHIND_THE_ARENA = 128
"""Bytes that kernels may read behind an arena, which `arenite-run` counts with it."""
_WRITTEN = TemporaryDirectory()
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@cache
def of_zoo(network: str) -> Path:
    """Return the file of a network of the zoo."""
    return zoo_file(network, Path(_WRITTEN.name))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def sessions(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each command that a page shows with its output, and that output."""
    for language, text in _BLOCK.findall(page.read_text()):
        if language == "console":
            for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, output = session.partition("\n")
                yield command, output


def mentions(page: Path) -> Iterator[list[str]]:
    """Yield the words after `arenite` of each command on a page, on a line or in the text."""
    text = page.read_text().replace("\\\n", " ")
    for line in re.findall(r"(?:^ *\$ |^    +|`)arenite ([^`\n]+)", text, re.MULTILINE):
        words = shlex.split(re.sub(r"\.\.\.|[][]", " ", line), comments=True)
        yield words[: words.index(">")] if ">" in words else words


def plain(text: str) -> str:
    """Return the text without what differs from run to run, or from machine to machine.

    That is times, the width of tables, and what stays resident: weights are packed for the
    processor.
    """
    text = re.sub(r"(< )?[\d,.]+ m?s\b", "TIME", text)
    text = re.sub(r"^(resident +)[\d,]+ B \([\d.]+ \w+\)", r"\1BYTES", text, flags=re.MULTILINE)
    text = re.sub("─+", "─", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip()) + "\n"


def output_of(command: str) -> str:
    """Return what a command prints, less what it sends to a file."""
    words = shlex.split(command)
    if words[0] != "arenite":
        return in_a_shell(command)
    target = None
    if ">" in words:
        *words, _, target = words
    printed = StringIO()
    to_file = StringIO()
    with redirect_stdout(to_file if target else printed), redirect_stderr(printed):
        main(words[1:])
    if target:
        Path(target).write_text(to_file.getvalue())
    return printed.getvalue()


def in_a_shell(command: str) -> str:
    """Return what a command of the system prints, with this Python before others."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def bring_models(text: str, folder: Path) -> None:
    for name, find in _MODELS.items():
        if name in text:
            shutil.copy(find(), folder / name)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_is_mentioned_parses(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, *words in mentions(page):
        for word in words:
            if re.fullmatch(r"\w[\w.-]*", word):
                Path(word).touch()
        with suppress(MissingParameter):  # in the text, only the option that matters stands
            command = COMMANDS.get(name)
            if command is None:  # `arenite MODEL`
                command, words = GLANCE.load("glance"), [name, *words]
            command.make_context(name, words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_option_that_is_mentioned_exists(page):
    ours = {
        option
        for command in COMMANDS.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    mentioned = re.findall(r"`(--[a-z][a-z0-9-]*)", page.read_text())
    assert set(mentioned) <= ours | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_guide_names_every_kind_of_aliasing():
    page = (DOCS / "how-to" / "onnx.md").read_text()
    assert all(f"`--alias {kind}`" in page for kind in AliasKind)


def test_the_readme_shows_the_commands_that_a_newcomer_begins_with():
    begun = [shlex.split(command)[:2] for command, _ in sessions(ROOT / "README.md")]
    assert begun[0][0] == "cp"
    assert [words[1] for words in begun[1:]] == ["densenet121.onnx", "plan", "verify", "fit"]


def test_the_picture_of_bands_is_what_the_command_draws(tmp_path):
    bring_models("small_mobilenet.onnx", tmp_path)
    with chdir(tmp_path):
        output_of("arenite fit small_mobilenet.onnx -o bands.svg")
    assert (tmp_path / "bands.svg").read_text() == (DOCS / "bands.svg").read_text()


def rows_of(page: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the model and the numbers of each row of a page's tables that has any."""
    for line in re.findall(r"^\| (\w[\w.]* \|.*) \|$", (DOCS / page).read_text(), re.MULTILINE):
        name, *cells = line.split(" | ")
        numbers = [int(cell.replace(",", "")) for cell in cells if re.fullmatch(r"[\d,]+", cell)]
        if numbers:
            yield name, numbers


@pytest.mark.parametrize(
    ("model", "arena", "weights"),
    [(name, arena, weights) for name, (arena, weights, _) in rows_of("raspberry-pi.md")],
)
def test_the_arenas_on_the_page_of_the_raspberry_pi_are_those_that_are_planned(
    model, arena, weights
):
    path = shared(f"models/tflite/{model}.tflite")
    found = json.loads(output_of(f"arenite plan {path} --json"))
    assert found["height"] + BEHIND_THE_ARENA == arena
    assert found["held"]["weights"] == weights


@pytest.mark.parametrize(("model", "figures"), list(rows_of("other-tools.md")))
def test_the_arenas_in_bands_are_those_that_are_found(model, figures):
    path = shared(f"models/tflite/{model}.tflite")
    frontier = json.loads(output_of(f"arenite fit {path} --json"))["frontier"]
    least = min(each["height"] for each in frontier if each["macs_ratio"] == 1)
    assert [frontier[0]["height"], least] == figures[:2]


@pytest.mark.parametrize("page", [page for page in PAGES if any(sessions(page))], ids=name_of)
def test_the_output_that_is_shown_is_what_the_commands_print(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for command, shown in sessions(page):
        if page != ROOT / "README.md":  # what comes first runs as it is printed
            bring_models(command, tmp_path)
        printed = plain(output_of(command))
        assert OutputChecker().check_output(plain(shown), printed, ELLIPSIS), (command, printed)


@pytest.mark.parametrize(
    "page",
    [
        "compression.md",
        "how-to/annotate.md",
        "how-to/fine-tune.md",
        "how-to/use-a-plan.md",
        "index.md",
        "litert.md",
        "reference/python.md",
    ],
)
def test_the_python_that_is_shown_runs(page, tmp_path, capsys):
    text = (DOCS / page).read_text()
    bring_models(text, tmp_path)
    scope = {}
    with chdir(tmp_path):
        for command, _ in sessions(DOCS / page):
            output_of(command)
        for language, block in _BLOCK.findall(text):
            if language == "python":
                exec(block, scope)
    comments = re.findall(r"^print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == comments


def test_a_c_program_reaches_its_tensors_through_the_header_of_a_plan(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    bring_models("squeezenet.onnx", tmp_path)
    with chdir(tmp_path):
        as_written = "--target generic --order given --alias none"
        output_of(f"arenite plan squeezenet.onnx {as_written} -o plan.json")
    header = run(sys.executable, EXAMPLES / "plan_to_header.py", "plan.json", cwd=tmp_path)
    (tmp_path / "plan.h").write_text(header)
    run(compiler, "-std=c11", "-Werror", "-I.", EXAMPLES / "first_layer.c", cwd=tmp_path)
    assert run(tmp_path / "a.out", cwd=tmp_path) in (DOCS / "how-to/use-a-plan.md").read_text()


def test_a_strategy_of_another_package_is_offered_and_compared(tmp_path):
    package = EXAMPLES / "arenite-random-fit"
    install(package, tmp_path)
    listed = run(sys.executable, "-m", "arenite", "strategies", cwd=tmp_path)
    assert "random-fit" in listed
    page = DOCS / "how-to" / "write-a-strategy.md"
    bring_models(page.read_text(), tmp_path)
    compared = run(sys.executable, "-m", "arenite", *next(mentions(page)), cwd=tmp_path)
    assert plain(compared) in plain(page.read_text())


def install(package: Path, folder: Path) -> None:
    """Lay a package out as pip does, entry points included, without the network."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    shutil.copytree(package / "src", folder, dirs_exist_ok=True)
    name = project["name"].replace("-", "_")
    metadata = folder / f"{name}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a process prints, with the checkout and its folder on Python's path."""
    parts = [ROOT / part for part in ("planner", "strategies", "runtime", "cli")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, [cwd, *parts])),
        "COLUMNS": "120",
    }
    process = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.rstrip("\n")
