"""A model to a plan, a program, a budget, another runtime."""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.pipeline.making.building import build_by_plan, build_model, build_program
    from arenite.pipeline.making.calibration import measured, measured_link
    from arenite.pipeline.making.costs import (
        HERE,
        MachineCosts,
        cache_file,
        costs_of,
        in_speeds,
        table,
        with_measured,
    )
    from arenite.pipeline.making.exporting import CRequest, ExportedC, export_for_tflm, write_c
    from arenite.pipeline.making.fitted import FittedModel, fit_model
    from arenite.pipeline.making.fitting import Fitting
    from arenite.pipeline.making.flash import FlashBudgetError, FlashPoint
    from arenite.pipeline.making.hops import StreamedModel, axis_of, hop_of, stream_model
    from arenite.pipeline.making.one_budget import OneBudget, measured_runs_s
    from arenite.pipeline.making.planning import PlannedModel, plan_model
    from arenite.pipeline.making.program_files import ProgramFile, TurnsByRows
    from arenite.pipeline.making.programs import (
        SUFFIX,
        backends,
        code_of,
        compile_by_plan,
        random_array,
        random_inputs,
        rounding_error,
        session_by_plan,
        with_fixed,
        write_program,
    )
    from arenite.pipeline.making.schedule_checks import (
        OverwrittenOutputError,
        SharedAtOnceError,
        TooManyOrdersError,
        check_system,
    )
    from arenite.pipeline.making.trading import Rescheduled
    from arenite.pipeline.making.tuning import tuned
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "HERE", "SUFFIX", "CRequest", "ExportedC", "FittedModel", "Fitting", "FlashBudgetError",
    "FlashPoint", "MachineCosts", "OneBudget", "OverwrittenOutputError", "PlannedModel",
    "ProgramFile", "Rescheduled", "SharedAtOnceError", "StreamedModel", "TooManyOrdersError",
    "TurnsByRows", "axis_of", "backends", "build_by_plan", "build_model", "build_program",
    "cache_file", "check_system", "code_of", "compile_by_plan", "costs_of", "export_for_tflm",
    "fit_model", "hop_of", "in_speeds", "measured", "measured_link", "measured_runs_s",
    "plan_model", "random_array", "random_inputs", "rounding_error", "session_by_plan",
    "stream_model", "table", "tuned", "with_fixed", "with_measured", "write_c", "write_program",
]  # fmt: skip
