"""Attempts of TensorFlow Lite Micro's interpreter, each in a process of its own."""

import itertools
import os

import pytest

pytest.importorskip("tflite_micro", reason="the extra 'tflm' is not installed")

from arenite.runtime.targets.tflm import interpreter_process
from arenite.runtime.targets.tflm.interpreter_process import AttemptError, attempt


def test_an_attempt_gives_what_its_function_returns():
    assert attempt(lambda: {"head": 16}) == {"head": 16}


def test_an_attempt_that_dies_says_how():
    with pytest.raises(AttemptError, match="killed by signal 6"):
        attempt(os.abort)


def test_an_attempt_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(interpreter_process, "ATTEMPT_S", 1)
    with pytest.raises(AttemptError, match="did not finish within 1 s"):
        attempt(lambda: sum(1 for _ in itertools.count()))
