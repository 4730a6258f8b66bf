"""Policies of third parties, registered by the entry point group `arenite.policies`."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from arenite.planner.policy import Policy

ENTRY_POINT_GROUP = "arenite.policies"


@cache
def registered() -> tuple[tuple[str, Policy], ...]:
    """Return the policies that installed packages register, each with its origin.

    Raises:
        ValueError: A registered object is not a policy.
    """
    found = entry_points(group=ENTRY_POINT_GROUP)
    return tuple((entry_point.value, _load(entry_point)) for entry_point in found)


def _load(entry_point: EntryPoint) -> Policy:
    loaded = entry_point.load()
    policy = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(policy, Policy):
        raise ValueError(f"entry point {entry_point.value!r} is not a policy")
    return policy
