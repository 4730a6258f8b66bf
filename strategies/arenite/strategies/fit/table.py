"""The table of policies: being in it is enough to be tested, compared and offered."""

from functools import cache

from arenite.planner.policy import Policy
from arenite.strategies.fit.capuchin import Capuchin
from arenite.strategies.fit.cdma import CDMA
from arenite.strategies.fit.checkmate import Checkmate
from arenite.strategies.fit.chen_greedy import ChenGreedy
from arenite.strategies.fit.gist import Gist
from arenite.strategies.fit.gist_fp16 import GistFP16
from arenite.strategies.fit.greedy_chains import GreedyChains
from arenite.strategies.fit.gruslys import Gruslys
from arenite.strategies.fit.joint import Joint
from arenite.strategies.fit.kusumoto import Kusumoto
from arenite.strategies.fit.layrub import Layrub
from arenite.strategies.fit.modnn import MoDNN
from arenite.strategies.fit.offload_prefetch import OffloadPrefetch
from arenite.strategies.fit.square_root import SquareRoot
from arenite.strategies.fit.superneurons import SuperNeuronsMemory, SuperNeuronsSpeed
from arenite.strategies.fit.tflms import TFLMS
from arenite.strategies.fit.vdnn import VDNNAll, VDNNConv, VDNNDynamic
from arenite.strategies.fit.xla_remat import XLARematerialisation
from arenite.strategies.registered import POLICY_REGISTER

POLICIES: tuple[Policy, ...] = (
    VDNNAll(),
    VDNNConv(),
    VDNNDynamic(),
    CDMA(),
    TFLMS(),
    MoDNN(),
    Layrub(),
    OffloadPrefetch(),
    SquareRoot(),
    ChenGreedy(),
    Gruslys(),
    Kusumoto(),
    Checkmate(),
    XLARematerialisation(),
    Gist(),
    SuperNeuronsSpeed(),
    SuperNeuronsMemory(),
    Capuchin(),
    GreedyChains(),
    Joint(),
)
"""Ours and the survey's, in the order of the documentation: swapping, recomputing, both."""

ROUNDING: tuple[Policy, ...] = (GistFP16(),)
"""Policies whose programs have other outputs to the bit: used where they are named, only there."""


@cache
def known_policies() -> dict[str, Policy]:
    """Return ours and those that installed packages register, by name; none of ours rounds.

    Raises:
        ValueError: Two policies have the same name, or a registered object is not a policy.
    """
    return POLICY_REGISTER.by_name(POLICIES, POLICY_REGISTER.others())


def find_policy(name: str) -> Policy:
    """Return the policy of that name.

    Raises:
        UnknownStrategyError: There is none; the error lists the known.
    """
    rounding = {policy.name: policy for policy in ROUNDING}
    return POLICY_REGISTER.find(name, {**known_policies(), **rounding})
