"""The command, run in this process, and small models for the commands that run models."""

import json

import numpy as np
import pytest

from arenite.cli.main import main
from support.command_models import CLASSIFIER, ENCODER, TWO_INPUTS
from support.tiny_onnx import parse, save, with_random_weights


@pytest.fixture
def run(capsys):
    """Run the command; return its exit code, standard output and standard error."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def run_json(run):
    """Run the command, which must succeed in silence, and return its JSON."""

    def run_json(*arguments):
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return run_json


@pytest.fixture
def refused(run):
    """Run the command, which must refuse with one line, and return that line."""

    def refused(*arguments):
        code, out, err = run(*arguments)
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err

    return refused


@pytest.fixture
def misused(run):
    """Run the command, which must refuse how it is called, and return what it says."""

    def misused(*arguments):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith(f"Usage: arenite {arguments[0]} ")
        return err

    return misused


@pytest.fixture
def classifier(tmp_path):
    """A small classifier of images."""
    return save(tmp_path, with_random_weights(parse(CLASSIFIER)))


@pytest.fixture
def image(tmp_path):
    """An input for it, as numbers."""
    path = tmp_path / "image.npy"
    np.save(path, np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32))
    return path


@pytest.fixture
def two_inputs(tmp_path):
    """A model with two inputs and two outputs."""
    folder = tmp_path / "two inputs"
    folder.mkdir()
    return save(folder, parse(TWO_INPUTS))


@pytest.fixture
def two_feeds(two_inputs):
    """Both of its inputs, as an `.npz` and the arrays in it."""
    generator = np.random.default_rng(2)
    arrays = {name: generator.standard_normal((2, 3)).astype(np.float32) for name in "ab"}
    path = two_inputs.with_name("both.npz")
    np.savez(path, **arrays)
    return path, arrays


@pytest.fixture
def encoder(tmp_path):
    """Return a model of texts of any length."""
    return save(tmp_path, parse(ENCODER))
