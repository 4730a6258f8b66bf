"""Spills whose places the order of the layers decides, not the clock."""

from collections.abc import Iterable, Sequence

import numpy as np

from arenite.planner.rewrites import SpillSpan
from arenite.strategies.schedules.draft import Draft, Instance, Loads
from arenite.strategies.schedules.spilling import Gap
from arenite.strategies.survey.passes import Passes


def gaps_over_turn(draft: Draft, passes: Passes) -> tuple[Gap, ...]:
    """Return the gaps between the forward and the backward pass, by the first backward reader.

    Cost: O(instances).
    """
    work = draft.work
    found: list[Gap] = []
    for storage, instances in enumerate(draft.instances):
        if not work.may_leave[storage] or work.sizes[storage] < passes.small:
            continue
        for instance in instances:
            forward, backward = _sides(draft, instance, passes.turn)
            if forward and backward and draft.slot(forward[-1]) + 1 < draft.slot(backward[0]):
                found.append(Gap(instance, forward[-1], backward[0]))
    return tuple(sorted(found, key=lambda gap: (draft.slot(gap.back), gap.instance.storage)))


def _sides(draft: Draft, instance: Instance, turn: int) -> tuple[list[int], list[int]]:
    runs = [instance.maker, *instance.readers]
    return (
        [run for run in runs if draft.slot(run) < turn],
        [run for run in runs if draft.slot(run) >= turn],
    )


def pipelined(draft: Draft, gaps: Sequence[Gap], *, lag: int) -> tuple[SpillSpan, ...]:
    """Return spills that go along with the layers.

    A tensor is copied out beside its last forward reader, which waits for that at its end, or
    that many tensors later. It is fetched beside the backward layer that uses the tensor fetched
    before it.

    Args:
        gaps: The gaps to spill in, by their first reader in the backward pass.
        lag: How many tensors later the copy out is waited for; 0 for beside its reader.
    """
    lefts = sorted({draft.slot(gap.left) + 1 for gap in gaps})
    backs = sorted({draft.slot(gap.back) for gap in gaps})
    spills: list[SpillSpan] = []
    for gap in gaps:
        after, back = draft.slot(gap.left) + 1, draft.slot(gap.back)
        place = backs.index(back)
        returns = backs[place - 1] if place else back
        gone = lefts[min(lefts.index(after) + lag, len(lefts) - 1)]
        leaves = after
        if lag == 0 and gap.left >= 0 and gap.left != gap.instance.maker:
            leaves = after - 1
        if gone <= returns:
            name = draft.work.names[gap.instance.storage]
            spills.append(SpillSpan(name, leaves, gone, max(returns, gone), back))
    return tuple(spills)


def loads_with(draft: Draft, spills: Iterable[SpillSpan]) -> Loads:
    """Return the loads of a draft with these spills.

    Cost: O(slots + spills).
    """
    storages = {name: storage for storage, name in enumerate(draft.work.names)}
    change = np.zeros(len(draft.order) + 1, np.int64)
    for span in spills:
        size = draft.work.sizes[storages[span.tensor]]
        change[span.gone] -= size
        change[span.returns] += size
    loads: Loads = draft.loads + np.cumsum(change[:-1])
    return loads
