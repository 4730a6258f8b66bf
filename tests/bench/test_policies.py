"""The training steps that policies are measured on, and the table of them."""

import json

import pytest

pytest.importorskip("onnx")

import policies
from arenite.planner.budget import Budget
from arenite.planner.costs import PCIE
from arenite.planner.equivalence import check_same_values
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.tensors import TensorKind
from arenite.strategies.fit import POLICIES, find_policy
from stated_training import training_step
from zoo import mobilenet_v2, unet


@pytest.fixture(scope="module")
def step():
    return training_step(mobilenet_v2.network(64, classes=10), 4, batch_statistics=True)


def test_every_weight_is_updated_once(step):
    states = {name for name, each in step.tensors.items() if each.kind is TensorKind.STATE}
    updated = [name for each in step.steps for name in each.writes if name in states]
    assert sorted(updated) == sorted(states)


def test_the_backward_pass_reads_what_the_forward_pass_made(step):
    names = [each.name for each in step.steps]
    turn = next(index for index, name in enumerate(names) if name.startswith("Loss"))
    made = {name for each in step.steps[:turn] for name in each.writes}
    read = {name for each in step.steps[turn + 1 :] for name in each.reads}
    assert len(made & read) > 100


def test_peaks_grow_with_the_batch():
    network = unet.network(128)
    one, four = (
        peak_of(training_step(network, batch, batch_statistics=False)) for batch in (1, 4)
    )
    assert 3 < four / one <= 4


def test_chains_lower_a_training_step_to_half(step):
    made = find_policy("greedy-chains")(step, Budget(50, is_percent=True), PCIE)
    assert peak_of(made) <= peak_of(step) // 2
    check_same_values(step, made)


def test_the_table_has_a_row_for_each_policy_and_budget(monkeypatch, capsys):
    monkeypatch.setitem(policies.NETWORKS, "unet", (lambda: unet.network(32), False))
    code = policies.main(["--network", "unet", "--batch", "1", "--machine", "sd", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert code == 0
    assert len(rows) == len(policies.BUDGETS) * (len(POLICIES) - 1)  # checkmate: too many steps


def test_a_claim_that_does_not_hold_is_told(capsys):
    slow = policies.Row("n", "m", "75%", "joint", 0.7, 0.5, 0, 9.0)
    quick = policies.Row("n", "m", "75%", "greedy-chains", 0.7, 0.1, 0, 9.0)
    assert not policies._holds([slow, quick], strict=False)
    assert not policies._holds([quick], strict=True)
    assert policies._holds([quick], strict=False)
    assert "joint is slower" in capsys.readouterr().err
