"""All policies: being listed or registered is enough to be tested, compared and offered."""

from functools import cache

from arenite.planner import Policy
from arenite.strategies.registered import POLICY_REGISTER
from arenite.strategies.schedules.greedy_chains import GreedyChains
from arenite.strategies.schedules.joint import Joint
from arenite.strategies.schedules.offload_prefetch import OffloadPrefetch

POLICIES: tuple[Policy, ...] = (OffloadPrefetch(), GreedyChains(), Joint())
"""Ours. Those of the literature, in `survey/`, register by entry point."""


@cache
def known_policies() -> dict[str, Policy]:
    """Return ours and those that installed packages register, by name.

    A policy that is not exact (`planner.policy.is_exact`) is used only if the user names it.

    Raises:
        PluginError: Two policies have the same name.
    """
    return POLICY_REGISTER.by_name(POLICIES, POLICY_REGISTER.others())


def find_policy(name: str) -> Policy:
    """Return the policy of that name.

    Raises:
        UnknownStrategyError: There is none; the error lists the known.
    """
    return POLICY_REGISTER.find(name, known_policies())
