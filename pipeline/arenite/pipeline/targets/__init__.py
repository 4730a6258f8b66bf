"""Whose memory is planned: the graph as written, or a runtime."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.targets.arenite import compiled_for
    from arenite.pipeline.targets.choice import (
        ARENITE,
        GENERIC,
        TARGETS,
        Chosen,
        check_options,
        choose_target,
    )
    from arenite.pipeline.targets.compiling import Compiled
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "ARENITE", "GENERIC", "TARGETS", "Chosen", "Compiled", "check_options", "choose_target",
    "compiled_for",
]  # fmt: skip
