"""The training steps that policies are measured on, and the table of them."""

import json

import pytest

pytest.importorskip("onnx")

import policies
from arenite.planner.programs.costs import PCIE, Budget
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.tensors import TensorKind
from arenite.strategies import find_policy
from policy_claims import CLAIMS
from real_steps import Network, training_step
from zoo import mobilenet_v2
from zoo.batch_norms import with_batch_norms
from zoo.builder import NetworkBuilder


def small():
    """Return a network of few layers: its step has a hundred steps or two."""
    net = NetworkBuilder("small")
    x = net.input("image", 1, 3, 32, 32)
    for channels in (8, 12, 16):
        x = net.conv(x, channels, 3, activation="relu")
    x = net.conv(net.global_average_pool(x), 10)
    net.output(net.softmax(net.reshape(x, 1, 10)), "probabilities")
    return net.build()


SMALL = Network(small, batch_statistics=True)


@pytest.fixture(scope="module")
def step():
    return training_step(SMALL, 4)


def test_every_state_is_updated_and_none_is_counted(step):
    states = {name for name, each in step.tensors.items() if each.kind is TensorKind.STATE}
    updated = {step.root(name)[0] for each in step.steps for name in each.writes}
    assert states
    assert states <= updated
    assert {step.tensors[name].memory for name in states} != {step.memories[0].name}


def test_a_batch_norm_follows_every_convolution():
    nodes = with_batch_norms(mobilenet_v2.network(32, classes=10)).graph.node
    followers = {node.input[0]: node.op_type for node in nodes}
    convolutions = [node.output[0] for node in nodes if node.op_type == "Conv"]
    assert len(convolutions) > 50
    assert {followers[name] for name in convolutions} == {"BatchNormalization"}


def test_chains_lower_a_training_step_to_half(step):
    made = find_policy("greedy-chains")(step, Budget(50, is_percent=True), PCIE)
    assert peak_of(made) <= peak_of(step) // 2
    check_same_values(step, made)


def test_the_table_has_a_row_for_each_policy_and_budget(monkeypatch, capsys):
    monkeypatch.setitem(policies.NETWORKS, "unet", SMALL)
    code = policies.main(["--network", "unet", "--batch", "1", "--machine", "sd", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert code == 0
    assert len(rows) == len(policies.BUDGETS) * len(policies.COMPARED)
    assert {row["policy"] for row in rows if row["reason"]} == {"checkmate"}  # too many steps


def test_every_claim_is_of_a_policy_of_the_table():
    assert CLAIMS.keys() < {policy.name for policy in policies.COMPARED}


def row(policy, extra_time, decide_s=0.1):
    return policies.Row(
        "resnet50", 3000, "pcie", "75%", policy, 0.7, extra_time, decide_s=decide_s
    )


def test_a_claim_that_does_not_hold_is_told(capsys):
    slow, quick = row("joint", 0.5), row("greedy-chains", 0.1)
    assert not policies._holds([slow, quick], {}, strict=False)
    assert "joint is slower" in capsys.readouterr().err
    assert not policies._holds([quick], policies.LIMITS, strict=False)
    assert "greedy-chains adds over 1.8 %" in capsys.readouterr().err
    assert policies._holds([row("greedy-chains", 0.0184)], policies.LIMITS, strict=False)
    assert not policies._holds([row("greedy-chains", None)], policies.LIMITS, strict=False)


def test_policies_that_think_for_long_are_told(capsys):
    assert policies._holds([row("greedy-chains", 0.01, 2.1)], {}, strict=True)
    assert not policies._holds([row("greedy-chains", 0.01, 2.3)], {}, strict=True)
    assert "takes 2.3 s to decide" in capsys.readouterr().err
    assert policies._holds([row("joint", 0.01, 20.0)], {}, strict=True)
