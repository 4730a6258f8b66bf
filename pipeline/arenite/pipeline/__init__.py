"""The way of a model: read, ordered, placed, fitted into a budget, built, compared.

The public functions load what they use when they are first named.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.api import build, compare, fit, fit_frontier, plan, stream
    from arenite.pipeline.comparison.comparing import Comparison
    from arenite.pipeline.generation.generator import Generated, Generator, Piece
    from arenite.pipeline.generation.sampling import Sampling
    from arenite.pipeline.making.building import Built
    from arenite.pipeline.making.fitted import FittedFrontier, FittedModel
    from arenite.pipeline.making.hops import StreamedModel
    from arenite.pipeline.making.planning import PlannedModel
    from arenite.pipeline.session import Session, System
    from arenite.pipeline.steps import open_step
    from arenite.pipeline.systems.planning import PlannedSystem, plan_system
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Built", "Comparison", "FittedFrontier", "FittedModel", "Generated", "Generator", "Piece",
    "PlannedModel", "PlannedSystem", "Sampling", "Session", "StreamedModel", "System", "build",
    "compare", "fit", "fit_frontier", "open_step", "plan", "plan_system", "stream",
]  # fmt: skip
