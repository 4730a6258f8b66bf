"""What happens before a command runs: help, version, lazy imports, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import arenite as package
from arenite.cli.group import ENTRIES, arenite, commands
from arenite.cli.main import main
from arenite.cli.options.sections import SectionedCommand

HEAVY = {"numpy", "rich", "onnx", "tflite", "bokeh", "jinja2"}
IMPORTED = """
import json, sys
from arenite.cli.main import main
main(sys.argv[1:])
json.dump(sorted(sys.modules), sys.stderr)
"""
SLOW = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "arenite.cli.group":
            print("importing", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from arenite.cli.main import entry_point
sys.argv = ["arenite", "--version"]
entry_point()
"""
"""A machine on which imports take long."""

IN_NATIVE = """
import enum, signal, sys
make = enum.EnumType.__call__
def interrupted(cls, value, *rest, **named):
    if value == "Fit":
        signal.raise_signal(signal.SIGINT)
    return make(cls, value, *rest, **named)
enum.EnumType.__call__ = interrupted
from arenite.cli.main import entry_point
sys.argv = ["arenite", "strategies"]
entry_point()
"""
"""Ctrl-C while a native module makes an enumeration, where nanobind aborts on any exception."""

IN_CALLBACK = """
import time, weakref
from arenite.cli import main
def slow(argv):
    kept = set()
    seen = weakref.ref(kept, lambda _: signal.raise_signal(signal.SIGINT))
    del kept
    time.sleep(60)
main.main = slow
main.entry_point()
"""
"""Ctrl-C in a callback, whose exceptions Python prints and ignores."""


def help_of(*words, option="--help"):
    result = CliRunner().invoke(arenite, [*words, option], prog_name="arenite", terminal_width=80)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("-h",)])
def test_help_and_version_import_nothing_heavy(words):
    process = subprocess.run(
        [sys.executable, "-c", IMPORTED, *words], capture_output=True, text=True, check=True
    )
    assert process.stdout
    modules = json.loads(process.stderr)
    assert not {module.partition(".")[0] for module in modules} & HEAVY
    ours = {module.split(".")[1] for module in modules if module.startswith("arenite.")}
    assert ours <= {"cli", "pipeline", "planner"}
    assert not [module for module in modules if module.startswith("arenite.cli.commands.")]


def test_a_command_imports_no_other():
    process = subprocess.run(
        [sys.executable, "-c", IMPORTED, "strategies"], capture_output=True, text=True, check=True
    )
    modules = json.loads(process.stderr)
    found = [module for module in modules if module.startswith("arenite.cli.commands.")]
    assert found == ["arenite.cli.commands.strategies"]


def test_nothing_is_imported_before_an_interrupt_is_caught():
    """A bare interpreter, and what the entry point adds to it: no package is searched for long."""
    code = "import io, os, sys; before = set(sys.modules); import arenite.cli.main; "
    code += "print(sorted(set(sys.modules) - before))"
    files = (package.__file__, main.__code__.co_filename)
    roots = [str(Path(file).parents[levels]) for levels, file in enumerate(files, 1)]
    path = os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert ended.stdout == "['arenite', 'arenite.cli', 'arenite.cli.main']\n"


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_control_c_while_the_program_starts_is_one_word_and_130():
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "importing\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "interrupted\n")


@pytest.mark.parametrize(
    "code",
    [
        IN_NATIVE,
        "import os\nos.fstat = lambda _: signal.raise_signal(signal.SIGINT)\n"
        "from arenite.cli.main import entry_point\nentry_point()",
        IN_CALLBACK,
    ],
    ids=["in a native module", "before anything", "in a callback"],
)
def test_control_c_while_the_program_loads_is_one_word_and_130(code):
    ended = subprocess.run(
        [sys.executable, "-c", f"import signal\n{code}"], capture_output=True, text=True,
        check=False, timeout=30,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_every_command_is_listed_under_its_name():
    found = dict(commands())
    assert list(found) == list(ENTRIES)
    assert all(isinstance(command, click.Command) for command in found.values())
    assert all(command.name == name for name, command in found.items())
    overall = help_of()
    assert all(f"\n  {name} " in overall for name in found)


def test_an_unknown_command_is_wrong_usage():
    result = CliRunner().invoke(arenite, ["plann"], prog_name="arenite")
    assert result.exit_code == 2
    assert "plann" in result.output


@pytest.mark.parametrize("name", ENTRIES)
def test_every_option_has_a_sentence_of_help(name):
    command = dict(commands())[name]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help[0].isupper(), parameter.help
            assert parameter.help.rstrip()[-1] in ".]", parameter.help


@pytest.mark.parametrize("name", ENTRIES)
def test_help_fits_a_terminal_and_names_every_option_once(name):
    command = dict(commands())[name]
    has_more = any("--help-all" in parameter.opts for parameter in command.params)
    text = help_of(name, option="--help-all" if has_more else "--help")
    assert max(map(len, text.splitlines())) <= 80
    words = [word.strip(",") for line in text.splitlines() for word in line.split()[:3]]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert words.count(parameter.opts[-1]) >= 1, parameter.opts


@pytest.mark.parametrize("name", ["plan", "inspect", "compare", "fit", "build"])
def test_the_short_help_leaves_out_what_is_rare(name):
    short, long = help_of(name), help_of(name, option="--help-all")
    assert "--help-all" in short
    assert "--value" in long
    assert "--value" not in short
    assert len(short.splitlines()) < 75


def test_the_help_of_generate_shows_all_options():
    text = help_of("generate")
    assert "--help-all" not in text
    assert {"--cache", "--seed"} <= set(text.split())


@pytest.mark.parametrize("name", ENTRIES)
def test_sections_name_parameters_that_exist_and_leave_few_without_one(name):
    command = dict(commands())[name]
    if isinstance(command, SectionedCommand):
        named = [each for names in command.sections.values() for each in names]
        assert len(named) == len(set(named))
        assert set(named) <= {parameter.name for parameter in command.params}
    options = help_of(name).partition("\nOptions:\n")[2].partition("\n\n")[0]
    assert sum(line.startswith("  -") for line in options.splitlines()) < 10
