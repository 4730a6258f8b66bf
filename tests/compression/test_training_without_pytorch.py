import sys

import onnx
import pytest

from arenite.compression.training import Schedule, fine_tune, trainable, tune_codebooks
from arenite.planner.errors import MissingDependencyError

MODEL = onnx.helper.make_model(onnx.helper.make_graph([], "empty", [], []))


@pytest.mark.parametrize(
    "train",
    [
        lambda: trainable(MODEL),
        lambda: fine_tune(object(), {}, [], Schedule(1)),
        lambda: tune_codebooks(object(), {}, [], Schedule(1)),
    ],
)
def test_without_pytorch_the_extra_is_named(train, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"arenite\[train\]"):
        train()
