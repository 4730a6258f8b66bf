"""Run models by their plan: programs, sessions, and the targets that obey a plan.

The names here and in the packages below that have an `__all__` are public: other packages import
nothing else. Each is imported when it is first used.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.runtime.errors import (
        DeadMemoryError,
        FeedError,
        IndexRangeError,
        InputNameError,
        InputShapeError,
        InputTypeError,
        ProgramError,
        ResourceError,
        SessionBusyError,
        SessionClosedError,
        SessionForkedError,
        SizeRangeError,
        StageOrderError,
        StatesFileError,
        StatesFullError,
        UnexpectedRuntimeError,
        UnwritableProgramError,
    )
    from arenite.runtime.session.closing import Closing
    from arenite.runtime.session.running import System, SystemStage
    from arenite.runtime.session.session import MAX_THREADS, Session, SessionOptions
    from arenite.runtime.session.stated import (
        ArenaMemory,
        SessionMemory,
        SessionPort,
        SessionStage,
        StepProfile,
        Tuned,
        chrome_trace,
        processor_name,
    )
    from arenite.runtime.session.states import States
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "MAX_THREADS", "ArenaMemory", "Closing", "DeadMemoryError", "FeedError", "IndexRangeError",
    "InputNameError", "InputShapeError", "InputTypeError", "ProgramError", "ResourceError",
    "Session", "SessionBusyError", "SessionClosedError", "SessionForkedError", "SessionMemory",
    "SessionOptions", "SessionPort", "SessionStage", "SizeRangeError", "StageOrderError", "States",
    "StatesFileError", "StatesFullError", "StepProfile", "System", "SystemStage", "Tuned",
    "UnexpectedRuntimeError", "UnwritableProgramError", "chrome_trace", "processor_name",
]  # fmt: skip
