"""What the documentation shows is what the commands do."""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path

import pytest
from click import MissingParameter

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from arenite.planner.programs.rules import AliasKind
from arenite.runtime import Session
from arenite.strategies import find
from bench.contests.arm import MODELS
from bench.harness.inputs import zoo_file
from bench.quantised import quantised_file
from bench.zoo import EDGE, NETWORKS, SEQUENCES
from support.command import GLANCE, commands
from support.documentation import (
    DOCS,
    EXAMPLES,
    PAGES,
    ROOT,
    agrees,
    blocks,
    bring_models,
    output_of,
    run_block,
    scratch,
    sessions,
)
from support.shared_material import shared

COMMANDS = dict(commands())


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def mentions(page: Path) -> Iterator[list[str]]:
    """Yield the words after `arenite` of each command on a page, on a line or in the text."""
    text = page.read_text().replace("\\\n", " ")
    for line in re.findall(r"(?:^ *(?:\$ )?|`)arenite ([^`\n]+)", text, re.MULTILINE):
        words = shlex.split(re.sub(r"\.\.\.|[][]", " ", line), comments=True)
        yield words[: words.index(">")] if ">" in words else words


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
    assert set(mentioned) <= ours | {"--help", "--update-golden"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_a_page_includes_is_there(page):
    lines = re.findall(r"^.*--8.*$", page.read_text(), re.MULTILINE)
    for line in lines:  # a formatter of Python may rewrite the mark
        assert line.startswith('--8<-- "'), line
        assert (ROOT / line.split('"')[1]).is_file(), line


def test_the_guide_names_every_kind_of_aliasing():
    page = (DOCS / "how-to" / "onnx.md").read_text()
    assert all(f"`--alias {kind}`" in page for kind in AliasKind)


def test_the_readme_shows_the_commands_that_a_newcomer_begins_with():
    shown = [each for block in blocks(ROOT / "README.md") for each in sessions(block)]
    begun = [shlex.split(command)[:2] for command, _ in shown]
    assert begun[0][0] == "cp"
    assert [words[1] for words in begun[1:5]] == ["densenet121.onnx", "plan", "verify", "fit"]


def test_the_picture_of_bands_is_what_the_command_draws(tmp_path):
    bring_models("small_mobilenet.onnx", tmp_path)
    with chdir(tmp_path):
        output_of("arenite fit small_mobilenet.onnx -o bands.svg")
    assert (tmp_path / "bands.svg").read_text() == (DOCS / "bands.svg").read_text()


def rows_of(page: str, section: str = "") -> Iterator[tuple[str, list[int]]]:
    """Yield the model and the numbers of each row of a page's tables that has any."""
    text = (DOCS / page).read_text()
    if section:
        text = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    for line in re.findall(r"^\| (\w[\w.]* \|.*) \|$", text, re.MULTILINE):
        name, *cells = line.split(" | ")
        numbers = [int(cell.replace(",", "")) for cell in cells if re.fullmatch(r"[\d,]+", cell)]
        if numbers:
            yield name, numbers


PI_ROWS = re.findall(
    r"^\| ([^|]+) \| ([\d,]+) \| ([\d,]+) \|", (DOCS / "raspberry-pi.md").read_text(), re.MULTILINE
)


def file_of_row(name: str, folder: Path) -> Path:
    """Return the model of a row on the page of the Raspberry Pi."""
    if name in {**NETWORKS, **EDGE, **SEQUENCES}:
        return zoo_file(name, folder)
    stems = {label: stem for stem, label in MODELS.items()}
    if name == MODELS["resnet50-int8"]:
        return quantised_file("resnet50", folder)
    if name in stems:
        return shared(f"models/tflite/{stems[name]}.tflite")
    return shared(f"models/onnx/{name}.onnx")


@pytest.mark.parametrize(("name", "arena", "weights"), PI_ROWS, ids=[row[0] for row in PI_ROWS])
def test_the_bytes_on_the_page_of_the_raspberry_pi_are_those_of_a_build(
    name, arena, weights, tmp_path
):
    path = tmp_path / "model.arena"
    build_program(file_of_row(name, tmp_path), path, reading=Reading(), strategy=find("best"))
    with Session(path) as session:
        held = session.memory()
    assert f"{held.memories:,}" == arena
    assert f"{held.weights:,}" == weights


BANDED_ROWS = [
    (model, figures)
    for model, figures in rows_of("benchmarks/arenas.md", "In bands of rows, beside others")
    if figures[0] < 1 << 20  # a search of larger ones takes minutes
]


@pytest.mark.parametrize(("model", "figures"), BANDED_ROWS)
def test_the_arenas_in_bands_are_those_that_are_found(model, figures):
    path = shared(f"models/tflite/{model}.tflite")
    frontier = json.loads(output_of(f"arenite fit {path} --json"))["frontier"]
    least = min(each["height"] for each in frontier if each["macs_ratio"] == 1)
    assert [frontier[0]["height"], least] == figures[:2]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(block.runs for block in blocks(page))], ids=name_of
)
def test_the_blocks_of_a_page_do_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    scratch(tmp_path)
    scope = {"__name__": "page"}
    for block in blocks(page):
        if block.runs and bring_models(block.text, tmp_path):
            run_block(block, page, scope)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_stands_in_a_block_that_is_run_or_says_why_not(page):
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    programs = "arenite|python|pip|pipx|make|cmake|sudo|cc|scp|scripts/|PYTHONPATH="
    assert re.findall(rf"^ {{4,}}(?:\$ )?(?:{programs}).*$", text, re.MULTILINE) == []
    assert "```{" not in page.read_text()
    reasons = [block.reason for block in blocks(page) if block.reason is not None]
    marks = re.findall(r"^ *<!-- not run", page.read_text(), re.MULTILINE)
    assert len(marks) == len(reasons)


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


def test_the_service_of_a_pi_classifies_frames_of_a_fake_camera(tmp_path):
    unit = configparser.ConfigParser()
    unit.read(EXAMPLES / "pi" / "watch.service")
    assert unit["Service"]["Restart"] == "always"
    assert unit["Install"]["WantedBy"] == "multi-user.target"  # of every start
    for name in ("watch.py", "watch.sh"):
        shutil.copy(EXAMPLES / "pi" / name, tmp_path)
    build_program(
        zoo_file("mobilenet-v1-0.25-96", tmp_path), tmp_path / "model.arena", reading=Reading(),
        strategy=find("greedy-by-size"),
    )  # fmt: skip
    for name, line in {
        "rpicam-vid": "exec yes",
        "ffmpeg": "exec head -c 55296 /dev/zero",
        "arenite/bin/python": f'exec {sys.executable} "$@"',
    }.items():
        made = tmp_path / name
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(f"#!/bin/sh\n{line}\n")
        made.chmod(0o755)
    command = shlex.split(unit["Service"]["ExecStart"])
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PATH": path, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["1", "1"]


def test_a_strategy_of_another_package_is_offered_and_compared(tmp_path):
    package = EXAMPLES / "arenite-random-fit"
    install(package, tmp_path)
    listed = run(sys.executable, "-m", "arenite", "strategies", cwd=tmp_path)
    assert "random-fit" in listed
    page = DOCS / "how-to" / "write-a-strategy.md"
    scratch(tmp_path)
    bring_models(page.read_text(), tmp_path)
    (words,) = (words for words in mentions(page) if words[0] == "compare")
    printed = run(sys.executable, "-m", "arenite", *words, cwd=tmp_path)
    assert agrees(f"...{printed}...", page.read_text())


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
    parts = [ROOT / part for part in ("planner", "strategies", "runtime", "cli", "compat")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, [cwd, *parts])),
        "COLUMNS": "120",
    }
    process = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.rstrip("\n")
