"""The comparison as files: the page, tables for other programs, a trace."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.report.colours import Groups
    from arenite.pipeline.report.compression import read_compression
    from arenite.pipeline.report.frontier import Frontier, Point, maps_of
    from arenite.pipeline.report.frontier_plots import (
        FRONTIER,
        as_item,
        frontier_figure,
        row_figure,
    )
    from arenite.pipeline.report.frontier_words import (
        frontier_columns,
        frontier_rows,
        price,
        remark,
    )
    from arenite.pipeline.report.model import Cell
    from arenite.pipeline.report.page import as_page, check_packages, render, stylesheet
    from arenite.pipeline.report.records import record_facts
    from arenite.pipeline.report.results import (
        FailedModel,
        ModelReport,
        PeerResult,
        SkippedStrategy,
        StrategyResult,
    )
    from arenite.pipeline.report.row_svg import as_svg
    from arenite.pipeline.report.tables import as_csv, as_markdown
    from arenite.pipeline.report.trace import as_trace
    from arenite.pipeline.report.words import made_with
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "FRONTIER", "Cell", "FailedModel", "Frontier", "Groups", "ModelReport", "PeerResult", "Point",
    "SkippedStrategy", "StrategyResult", "as_csv", "as_item", "as_markdown", "as_page", "as_svg",
    "as_trace", "check_packages", "frontier_columns", "frontier_figure", "frontier_rows",
    "made_with", "maps_of", "price", "read_compression", "record_facts", "remark", "render",
    "row_figure", "stylesheet",
]  # fmt: skip
