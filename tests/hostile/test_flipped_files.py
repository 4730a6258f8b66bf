"""Damaged files of every kind, given to every command: a sample of `support.flip_files`."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import forked
from support.flip_files import Trial, outcome_of
from support.hostile_files import Subject


def test_no_command_ends_with_a_traceback_or_leaves_half_a_file(tmp_path):
    for package in ("ai_edge_litert", "bokeh", "onnxruntime", "PIL"):
        pytest.importorskip(package)
    process = subprocess.run(
        [sys.executable, "-m", "support.flip_files", "200", "--seed", "20", "--quick",
         "--keep", tmp_path],
        env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout + process.stderr
    codes = {
        code: int(count) for count, code in re.findall(r"(\d+) ended with (\w+)", process.stdout)
    }
    assert sum(codes.values()) == 200
    assert codes["0"] > 30
    assert codes["1"] > 80


def fault_of(monkeypatch, command, *arguments, time_limit_s=20.0):
    """Return what is told of a command that does what `command` does."""
    monkeypatch.setattr(forked, "main", command)
    subject = Subject("a file", {"m.csv": b"whole"}, "m.csv", [])
    arguments = arguments or ("inspect", "m.csv")
    trial = Trial(0, subject, b"damaged", arguments)
    return outcome_of(trial, time_limit_s=time_limit_s).fault


def says(text, code):
    def command(_arguments):
        sys.stderr.write(text)
        return code

    return command


def writes(name, code):
    def command(_arguments):
        Path(name).write_bytes(b"half")
        sys.stderr.write("error: no\n" * code)
        return code

    return command


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (says("", 0), None),
        (says("note: so\n", 0), None),
        (says("error: no\n", 1), None),
        (says("Usage: arenite\n", 2), None),
        (lambda _: {}["x"], "traceback: KeyError: '...' at ?"),
        (lambda _: bytearray(1 << 40), "traceback: MemoryError at ?"),
        (lambda _: os.abort(), "ended by SIGABRT"),
        (lambda _: sys.exit(7), "traceback: SystemExit: N at ?"),
        (says("", 7), "exit code 7"),
        (says("a library speaks\n", 0), "says on success: a library speaks"),
        (says("", 1), "fails with other than one line: "),
        (says("a library speaks\nerror: no\n", 1),
         "fails with other than one line: a library speaks; error: no"),
        (says("error: \x1b[31mred\n", 1), "writes the control character '\\x1b'"),
        (says("", 2), "a usage error without the usage"),
        (writes("m.csv", 0), "changed: m.csv, exit code 0"),
        (writes("tmp/left", 0), "left behind: tmp/left, exit code 0"),
        (writes("o.json", 1), "left behind: o.json, exit code 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(monkeypatch, command, fault):
    assert fault_of(monkeypatch, command) == fault


def test_a_command_that_hangs_is_ended(monkeypatch):
    hangs = fault_of(monkeypatch, lambda _: time.sleep(60), time_limit_s=0.2)
    assert hangs == "hangs"


def test_an_output_that_is_not_written_is_told(monkeypatch):
    fault = fault_of(monkeypatch, says("", 0), "compress", "m.csv", "-o", "o.onnx")
    assert fault == "unwritten: o.onnx, exit code 0"


def test_a_plan_that_does_not_verify_is_told(monkeypatch):
    def command(arguments):
        if arguments[0] == "verify":
            return says("error: overlap\n", 1)(arguments)
        return writes("o.json", 0)(arguments)

    fault = fault_of(monkeypatch, command, "plan", "m.csv", "-o", "o.json")
    assert fault == "not verified: error: overlap\n"
