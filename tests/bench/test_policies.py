"""The training steps that policies are measured on, and the table of them."""

import pytest

pytest.importorskip("onnx")


from arenite.planner.programs.costs import PCIE, Budget
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.rewrites.rescheduling import peak_of
from arenite.planner.tensors import TensorKind
from arenite.strategies import find_policy
from bench.contests import policies
from bench.contests.policies import CLAIMS, Network, training_step
from bench.zoo.builder import NetworkBuilder, with_batch_norms
from bench.zoo.mobilenets import mobilenet_v2
from support.contests import asked, rows_of


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
    nodes = with_batch_norms(mobilenet_v2(32, classes=10)).graph.node
    followers = {node.input[0]: node.op_type for node in nodes}
    convolutions = [node.output[0] for node in nodes if node.op_type == "Conv"]
    assert len(convolutions) > 50
    assert {followers[name] for name in convolutions} == {"BatchNormalization"}


def test_chains_lower_a_training_step_to_half(step):
    made = find_policy("greedy-chains")(step, Budget(50, is_percent=True), PCIE)
    assert peak_of(made) <= peak_of(step) // 2
    check_same_values(step, made)


def test_the_table_has_a_row_for_each_policy_and_a_cell_for_each_budget(monkeypatch, tmp_path):
    monkeypatch.setitem(policies.NETWORKS, "unet", SMALL)
    rows, failures = rows_of(
        "policies", tmp_path, "--network", "unet", "--batch", "1", "--machine", "sd"
    )
    assert not failures
    assert [row["policy"] for row in rows] == [policy.name for policy in policies.COMPARED]
    refused = {row["policy"] for row in rows if "-" in {row[each] for each in policies.BUDGETS}}
    assert refused == set()


def test_every_claim_is_of_a_policy_of_the_table():
    assert CLAIMS.keys() < {policy.name for policy in policies.COMPARED}


def tried(policy, extra_time, decide_s=0.1):
    return policies.Tried(
        "resnet50", 3000, "pcie", "75%", policy, 0.7, extra_time, decide_s=decide_s
    )


@pytest.fixture
def holds(tmp_path):
    def checked(found, limits, *, strict=False):
        given = asked("policies", tmp_path)
        policies.check(given, found, limits, strict=strict)
        return not given.failures

    return checked


def test_a_claim_that_does_not_hold_is_told(holds, capsys):
    slow, quick = tried("joint", 0.5), tried("greedy-chains", 0.1)
    assert not holds([slow, quick], {})
    assert "joint is no slower" in capsys.readouterr().err
    assert not holds([quick], policies.LIMITS)
    assert "greedy-chains adds at most 1.8 %" in capsys.readouterr().err
    assert holds([tried("greedy-chains", 0.0184)], policies.LIMITS)
    assert not holds([tried("greedy-chains", None)], policies.LIMITS)


def test_policies_that_think_for_long_are_told(holds, capsys):
    assert holds([tried("greedy-chains", 0.01, 2.1)], {}, strict=True)
    assert not holds([tried("greedy-chains", 0.01, 2.3)], {}, strict=True)
    assert "decides in 2.3 s" in capsys.readouterr().err
    assert holds([tried("joint", 0.01, 20.0)], {}, strict=True)
