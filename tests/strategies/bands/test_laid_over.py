"""Results that lie where the rows are that they replace: tokens to which each layer adds."""

import numpy as np
import onnx
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import random_inputs
from arenite.strategies.bands.expand import _takes_place
from bench.zoo.edge import bert_layers


@pytest.fixture
def encoder(tmp_path):
    path = tmp_path / "encoder.onnx"
    onnx.save(bert_layers(rows=24, layers=3, features=64), path)
    return path


def test_tokens_to_which_each_layer_adds_take_one_place_and_it_pays(encoder, monkeypatch):
    fitting = Fitting(encoder, Reading())
    whole, *_, least = fitting.frontier()
    laid = [each for each in least.unshared.tensors.values() if each.alias is not None]
    assert any("/rows" not in each.name for each in laid)
    feeds = random_inputs(fitting.program, 0)
    with fitting.session(whole) as one, fitting.session(least) as other:
        expected, found = one.run(feeds), other.run(feeds)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    monkeypatch.setattr("arenite.strategies.bands.expand._takes_place", lambda *_, **__: False)
    assert least.height < Fitting(encoder, Reading()).frontier()[-1].height


@pytest.mark.parametrize(
    ("deaths", "births", "in_place", "takes"),
    [
        ([0, 0, 2, 2], [1, 1, 3, 3], False, True),
        ([0, 0, 2, 2], [0, 0, 2, 2], True, True),
        ([0, 0, 2, 2], [0, 0, 2, 2], False, False),  # still read
        ([0, 0, 2, 2], [3, 3, 4, 4], False, False),  # free for too long
    ],
)
def test_rows_take_the_place_of_those_that_died_last(deaths, births, in_place, takes):
    assert _takes_place(deaths, births, in_place=in_place) is takes
