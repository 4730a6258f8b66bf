"""Strategies and policies compared on models."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.comparison.baseline import Difference, differences, read_baseline
    from arenite.pipeline.comparison.comparing import Compared, Comparison, Task, compare_each
    from arenite.pipeline.comparison.model_files import find_model_files, readings_of
    from arenite.pipeline.comparison.policies import (
        ModelPolicies,
        PolicyContest,
        PolicyResult,
        chosen_policies,
        compare_policies,
    )
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "Compared", "Comparison", "Difference", "ModelPolicies", "PolicyContest",
    "PolicyResult", "Task", "chosen_policies", "compare_each", "compare_policies",
    "differences", "find_model_files", "read_baseline", "readings_of",
]  # fmt: skip
