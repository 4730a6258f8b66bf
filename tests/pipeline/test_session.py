"""`arenite.Session` of a model that was not built: the program that `arenite build` writes."""

import copy
import pickle

import pytest

from arenite.pipeline.making.building import build_model
from arenite.pipeline.session import Session
from arenite.runtime import ProgramError
from arenite.runtime.program import write_assembly
from arenite.strategies import find
from support.running import MANY_KINDS, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights


@pytest.fixture
def model(tmp_path):
    return save(tmp_path, with_random_weights(parse(MANY_KINDS)))


def test_a_model_runs_and_takes_the_arena_of_its_program(model):
    built = build_model(model)
    with Session(model) as session:
        feeds = random_feeds(session)
        found = session.run(feeds)
        for name, expected in reference_outputs(model, feeds).items():
            assert found[name] == pytest.approx(expected, rel=1e-4, abs=1e-5)
        assert session.arena_bytes == built.outcome.plan.height


def test_a_model_and_its_program_file_are_the_same_program(model, tmp_path):
    built = build_model(model)
    path = tmp_path / "model.arena"
    write_assembly(path, built.compiled.assemble(built.outcome.plan))
    with Session(model) as of_model, Session(path) as of_file:
        assert of_model.flatbuffer() == of_file.flatbuffer()


def test_a_strategy_may_be_another(model):
    with Session(model, strategy=find("no-reuse")) as session, Session(model) as best:
        assert session.arena_bytes > best.arena_bytes


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "model.pb"
    path.write_bytes(b"nothing")
    with pytest.raises(ProgramError):
        Session(path)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_is_neither_copied_nor_pickled(model, copied):
    with Session(model) as session, pytest.raises(TypeError, match="cannot be copied or pickled"):
        copied(session)


def test_inputs_without_names_are_refused(model):
    with Session(model) as session, pytest.raises(TypeError, match="is a list; give a dict"):
        session.run([*random_feeds(session).values()])


@pytest.mark.parametrize("threads", ["2", 1.0, True, None])
def test_a_number_of_threads_that_is_none_is_refused(model, threads):
    with pytest.raises(TypeError, match=r"threads is .*; give an integer"):
        Session(model, threads=threads)


def test_a_session_of_a_copy_outlives_its_file(model, tmp_path):
    built = build_model(model)
    path = tmp_path / "model.arena"
    write_assembly(path, built.compiled.assemble(built.outcome.plan))
    with Session(path, copy=True) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)
        path.write_bytes(b"")  # in place: a mapped file would end the process with SIGBUS
        found = session.run(feeds)
        assert all((found[name] == array).all() for name, array in expected.items())
    with pytest.raises(ProgramError, match="cannot be read"):
        Session(tmp_path / "absent.arena", copy=True)
