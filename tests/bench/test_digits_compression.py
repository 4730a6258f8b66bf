"""The figures on the digits: what is measured is what the recipes say."""

import json
from typing import NamedTuple

import numpy as np
import onnx
import pytest

pytest.importorskip("sklearn", reason="the extra 'bench' is not installed")


from arenite.compression import unpack
from arenite.compression.retrain import weights_of
from bench.digits.comparison import RECIPES, Fold, compared, layers_of
from bench.digits.networks import NUM_FOLDS, Labelled, num_bytes, splits
from bench.digits.recipes import Compressed, DigitsRecipe, compress, train_dense, train_student
from support.contests import run_contest


def fold(dense: float, compressed: float, compressed_bytes: int = 20) -> Fold:
    return Fold(dense, compressed, 5.0, 1000, compressed_bytes, 25)


def test_each_digit_is_held_out_once_and_never_trained_on():
    folds = list(splits(7))
    assert len(folds) == NUM_FOLDS
    assert sum(len(each.held_out["labels"]) for each in folds) == 1797
    for split in folds:
        assert len(split.training["labels"]) + len(split.held_out["labels"]) == 1797
        assert np.bincount(split.held_out["labels"], minlength=10).min() >= 17


class Trained(NamedTuple):
    """A network after an epoch of each kind."""

    recipe: DigitsRecipe
    digits: Labelled
    dense: onnx.ModelProto
    compressed: Compressed


@pytest.fixture(scope="module", params=RECIPES)
def trained(request):
    recipe = RECIPES[request.param].shortened()
    digits = next(splits(100, recipe.image)).training
    dense = train_dense(recipe, digits, 0)
    before = dense.SerializeToString()
    compressed = compress(recipe, dense, digits, 0)
    assert dense.SerializeToString() == before
    return Trained(recipe, digits, dense, compressed)


def test_a_container_is_the_network_and_follows_its_recipe(trained):
    weights = weights_of(trained.compressed.model)
    restored = unpack(trained.compressed.container)
    assert restored.keys() == weights.keys()
    assert all(np.array_equal(restored[name], weights[name]) for name in weights)
    layers = [each for each in layers_of(weights) if each.name.endswith("weight")]
    for layer, density, bits in zip(
        layers, trained.recipe.densities, trained.recipe.bits, strict=True
    ):
        assert layer.kept <= density + 0.5 / layer.num_weights
        assert layer.bits <= bits
    assert num_bytes(trained.dense) / len(trained.compressed.container) > 20


def test_the_small_dense_network_has_255_levels_and_about_as_many_bytes(trained):
    student, size = train_student(trained.recipe, trained.dense, trained.digits, 0)
    for weights in weights_of(student).values():
        if weights.ndim > 1:
            levels = weights / np.abs(weights).max() * 127
            assert np.abs(levels - levels.round()).max() < 1e-3
    assert size == pytest.approx(len(trained.compressed.container), rel=0.25)


def test_a_row_has_the_mean_difference_and_its_interval():
    row, _ = compared("net", [fold(1.0, 1.0), fold(2.0, 2.5), fold(3.0, 3.5), fold(2.0, 2.0)])
    assert (row.dense_error, row.error, row.difference) == (2.0, 2.25, 0.25)
    assert row.margin == pytest.approx(3.182 * 0.288675 / 2, rel=1e-3)  # t of 3 degrees
    assert (row.ratio, row.least_ratio) == (50, 50)
    assert not row.holds


def test_a_row_holds_only_if_it_is_small_and_surely_no_worse():
    assert compared("net", [fold(1, 1), fold(2, 2.1)] * 10)[0].holds
    assert not compared("net", [fold(1, 1, 29), fold(2, 2.1, 29)] * 10)[0].holds
    assert not compared("net", [fold(1, 1), fold(2, 2.6)] * 10)[0].holds


def test_a_quick_run_has_rows_and_tells_that_little_training_is_not_enough(capsys):
    assert run_contest("digits-compression", "--quick", "--json") == 1
    variants, layers = json.loads(capsys.readouterr().out)["tables"]
    assert [(row[0], row[2]) for row in variants["rows"]] == [
        (name, 2) for name in RECIPES for _ in range(2)
    ]
    assert len(layers["rows"]) == 14
