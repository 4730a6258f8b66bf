"""What the prices of chains, and spills one by one, are worth."""

from arenite.planner.programs.costs import Budget, Costs, Link
from arenite.planner.programs.policy import Policy
from arenite.planner.timing import simulate
from arenite.strategies.schedules.chains import Chain, per_byte
from arenite.strategies.schedules.greedy_chains import GreedyChains
from arenite.strategies.schedules.joint import Joint
from support.training_programs import training_program

COSTS = Costs(1e9, 1e9, Link(1e9, 1e9))


def seconds(policy: Policy, seed: int, percent: int) -> float:
    made = policy(training_program(seed), Budget(percent, is_percent=True), COSTS)
    return simulate(made, COSTS).seconds


def test_the_price_of_a_chain_is_that_of_each_byte_that_it_gains():
    chain = Chain((3, 4), 6.0, 16)
    assert per_byte(chain, 1000) == per_byte(chain, 4) == 6 / 16
    assert per_byte(chain, 1000, 0.5) == 6 / 4


def test_a_capped_price_counts_only_bytes_that_have_to_go():
    chain = Chain((3, 4), 6.0, 16)
    assert per_byte(chain, 4, capped=True) == 6 / 4
    assert per_byte(chain, 1000, capped=True) == 6 / 16


def test_a_price_of_the_bytes_that_have_to_go_pays():
    assert seconds(GreedyChains(), 21, 85) < seconds(GreedyChains(capped_powers=()), 21, 85)


def test_the_quickest_of_several_prices_stays():
    every = GreedyChains()
    for power in every.powers:
        alone = GreedyChains(powers=(power,), capped_powers=())
        assert seconds(every, 21, 85) <= seconds(alone, 21, 85)


def test_swaps_one_by_one_pay():
    few = Joint(counts=(1, 2), more_spills=0)
    assert seconds(Joint(counts=(1, 2)), 10, 60) < seconds(few, 10, 60)
