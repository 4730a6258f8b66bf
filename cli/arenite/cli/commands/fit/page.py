"""The page of a frontier: memory against time, and what lies where."""

from collections.abc import Sequence

from arenite.cli.commands.fit.fitting import Fit, Fitting


def frontier_page(fitting: Fitting, fits: Sequence[Fit], latencies: Sequence[float]) -> str:
    """Return the page."""
    raise NotImplementedError
