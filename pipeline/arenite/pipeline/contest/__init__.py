"""Engines that run a model, measured in turn."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.contest.engines import ENGINES, OURS, check_installed
    from arenite.pipeline.contest.rounds import (
        Contest,
        Measured,
        measure,
        ours,
        outputs_of,
        whole_inputs,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "ENGINES", "OURS", "Contest", "Measured", "check_installed", "measure", "ours", "outputs_of",
    "whole_inputs",
]  # fmt: skip
