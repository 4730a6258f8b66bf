"""Shared parts of the pipeline: readings, limits, observers, one search, errors."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.base.errors import OneBudgetError, OptionsError
    from arenite.pipeline.base.memories import spread_as
    from arenite.pipeline.base.observing import Observer, Search, SearchLimits
    from arenite.pipeline.base.ordering import order_finder
    from arenite.pipeline.base.placing import configured, place
    from arenite.pipeline.base.ranges import (
        Touched,
        along,
        completed,
        dimensions_as_json,
        problem_at,
        sizes_text,
        touched_along,
    )
    from arenite.pipeline.base.reading import Reading, reading_of
    from arenite.pipeline.base.text import (
        both,
        change,
        distance,
        duration,
        elided,
        gap,
        grouped,
        one_line,
        percent,
        plural,
        printable,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Observer", "OneBudgetError", "OptionsError", "Reading", "Search", "SearchLimits",
    "Touched", "along", "both", "change", "completed", "configured", "dimensions_as_json",
    "distance", "duration", "elided", "gap", "grouped", "one_line", "order_finder", "percent",
    "place", "plural", "printable", "problem_at", "reading_of", "sizes_text", "spread_as",
    "touched_along",
]  # fmt: skip
