"""The pages of the documentation, their blocks of code, and the models that these name."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from doctest import ELLIPSIS, OutputChecker
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx

from bench.harness.inputs import zoo_file
from bench.zoo.mobilenets import mobilenet_v2
from support.command import main
from support.shared_material import SHARED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in ROOT.glob("[!.]*/README.md") if page.parent.name != "bench"),
    *sorted(page for page in DOCS.rglob("*.md") if EXAMPLES not in page.parents),
)
COMMANDS = ("console", "sh")
EXECUTED = (*COMMANDS, "python")

_BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+ *)?"
    r"```(?P<language>\w+)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
_WRITTEN = TemporaryDirectory(prefix="arenite-docs-")
_LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
_MODELS = {
    "worked-example.csv": lambda: EXAMPLES / "worked-example.csv",
    "mobilenet_v2.onnx": lambda: write_mobilenet(Path(_WRITTEN.name) / "mobilenet_v2.onnx"),
    "small_mobilenet.onnx": lambda: zoo_file("mobilenet-v1-0.25-96", Path(_WRITTEN.name)),
    "densenet121.onnx": lambda: _LIGHT / "light_densenet121.onnx",
    "shufflenet.onnx": lambda: _LIGHT / "light_shufflenet.onnx",
    "squeezenet.onnx": lambda: _LIGHT / "light_squeezenet.onnx",
    "kws_ref_model.tflite": lambda: SHARED / "models/tflite/kws_ref_model.tflite",
    "mobilenet_v1_0.5_160_quant.tflite": lambda: (
        SHARED / "models/tflite/mobilenet_v1_0.5_160_quant.tflite"
    ),
    "silero_vad_16k_op15.onnx": lambda: SHARED / "models/onnx/silero_vad_16k_op15.onnx",
    "ultraface_rfb320.onnx": lambda: SHARED / "models/onnx/ultraface_rfb320.onnx",
    "vww_96_int8.tflite": lambda: SHARED / "models/tflite/vww_96_int8.tflite",
}
"""What `docs/models.md` says where to get, by name."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: What stands behind the fence.
        text: The lines, without the indentation of the fence.
        reason: Why the block is not run, or None.
        line: Number of the first line in the page.
    """

    language: str
    text: str
    reason: str | None
    line: int

    @property
    def runs(self) -> bool:
        return self.language in EXECUTED and self.reason is None


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        lines = match["text"].splitlines()
        width = len(match["indent"])
        code = "\n".join(line[width:] for line in lines) + "\n"
        code = _SNIPPET.sub(lambda file: (ROOT / file[1]).read_text(), code)
        line = text.count("\n", 0, match.start("text")) + 1
        yield Block(match["language"], code, match["reason"], line)


def sessions(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command of a block, with the output that is shown."""
    if block.language == "console":
        for session in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = re.sub(r"\\\n\s*", "", session, count=0).partition("\n")
            yield command, output
    elif block.language == "sh":
        for line in block.text.replace("\\\n", "").splitlines():
            if line.partition("#")[0].strip():
                yield line, ""


def bring_models(text: str, folder: Path) -> bool:
    """Copy the models that a text names, unless it makes them, and return whether all are here."""
    for name in _MODELS:
        made = rf'(?:-o |cp .*|savez\(|copy\(.*)"?{re.escape(name)}'
        if name not in text or (folder / name).exists() or re.search(made, text):
            continue
        if not (source := _found(name)).exists():
            return False
        shutil.copy(source, folder / name)
    return True


@cache
def _found(name: str) -> Path:
    return _MODELS[name]()


def scratch(folder: Path) -> None:
    """Make a folder look like a checkout: commands of a page name its folders."""
    for name in ("assets", "bench", "docs", "runtime", "scripts"):
        (folder / name).symlink_to(ROOT / name)


def output_of(command: str) -> str:
    """Return what a command that succeeds prints."""
    printed, code = run_command(command)
    assert code == 0, (command, printed)
    return printed


def run_command(command: str) -> tuple[str, int]:
    """Run a command in the current folder; return what it prints, less what goes to a file."""
    words = shlex.split(command, comments=True)
    if words[0] != "arenite":
        return _run_in_a_shell(command)
    target = None
    if ">" in words:
        *words, _, target = words
    printed, to_file = StringIO(), StringIO()
    with redirect_stdout(to_file if target else printed), redirect_stderr(printed):
        code = main(words[1:])
    if target:
        Path(target).write_text(to_file.getvalue())
    return printed.getvalue(), code


def _run_in_a_shell(command: str) -> tuple[str, int]:
    """Run a command of the system, with this Python before others."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else done.stderr, done.returncode


def plain(text: str) -> str:
    """Return the text without what differs from run to run, or from machine to machine.

    That is times, the width of tables, and what stays resident: weights are packed for the
    processor.
    """
    text = re.sub(r"(< )?[\d,.]+ m?s\b", "TIME", text)
    text = re.sub(r"^(resident +)[\d,]+ B \([\d.]+ \w+\)", r"\1BYTES", text, flags=re.MULTILINE)
    text = re.sub("─+", "─", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip()) + "\n"


def agrees(shown: str, printed: str) -> bool:
    """Return whether an output is the one that is shown; `...` stands for any text."""
    return OutputChecker().check_output(plain(shown), plain(printed), ELLIPSIS)


def run_block(block: Block, page: Path, scope: dict[str, object]) -> None:
    """Run a block in the current folder and compare what it prints with what the page shows."""
    where = f"{page.relative_to(ROOT)}:{block.line}"
    if block.language == "python":
        output = StringIO()
        with redirect_stdout(output):
            exec(compile(block.text, where, "exec"), scope)
        expected = re.findall(r"^ *(?:print\(.*)?\)  # (.+)$", block.text, re.MULTILINE)
        assert [line.rstrip() for line in output.getvalue().splitlines()] == expected, where
        return
    for command, shown in sessions(block):
        printed, code = run_command(command)
        assert code == int("error: " in shown), (where, command, printed)
        assert block.language == "sh" or agrees(shown, printed), (where, command, printed)


def write_mobilenet(path: Path) -> Path:
    """Write MobileNet v2 with random weights, each named by the layer that reads it."""
    model = mobilenet_v2(224, 10)
    renamed: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "Conv":
            renamed[node.input[1]] = f"{node.name}.weight"
            renamed[node.input[2]] = f"{node.name}.bias"
            node.input[1:] = [renamed[name] for name in node.input[1:]]
    for tensor in model.graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)
    onnx.save(model, path)
    return path
