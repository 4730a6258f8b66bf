"""Each record in turn into the vacant object that fits best."""

from collections.abc import Sequence

import numpy as np

from arenite.planner.problem import UsageRecord
from arenite.strategies.share.tenancy import Tenancy


def assign_best_fit(records: Sequence[UsageRecord], order: Sequence[int]) -> Sequence[int]:
    """Return the object of each record, objects numbered as they are made.

    A record takes the smallest vacant object that is large enough, else the largest
    vacant one, which grows, else a new one; the lowest index of equals.

    Args:
        records: In any order.
        order: Every record's index, once.

    Cost: time O(n^2), vectorised; memory O(n).
    Source: Pisarchyk and Lee, arXiv 2001.03288, algorithms 1 and 2.
    """
    tenancy = Tenancy(records)
    sizes = np.zeros(len(records), np.int64)
    for index in order:
        size = records[index].size
        vacant = tenancy.vacant(index)
        chosen = None
        if vacant.size:
            large_enough = vacant[sizes[vacant] >= size]
            if large_enough.size:
                chosen = int(large_enough[sizes[large_enough].argmin()])
            else:
                chosen = int(vacant[sizes[vacant].argmax()])
        chosen = tenancy.assign(index, chosen)
        sizes[chosen] = max(int(sizes[chosen]), size)
    return tenancy.assignment
