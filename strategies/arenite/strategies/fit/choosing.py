"""Which of several drafts is taken."""

from collections.abc import Iterable

from arenite.planner.ordering import ShouldStop
from arenite.strategies.fit.draft import Draft


def cheapest(drafts: Iterable[Draft], limit: int | None, should_stop: ShouldStop) -> Draft:
    """Return the quickest draft within the limit; the lowest if none is, or there is no limit."""
    best: tuple[int, float] | None = None
    chosen: Draft | None = None
    for draft in drafts:
        value = (max(draft.peak, limit or 0), draft.seconds)
        if best is None or value < best:
            best, chosen = value, draft
        if should_stop():
            break
    assert chosen is not None
    return chosen
