"""Run a model with every tensor at its planned offset."""

from arenite.runtime.session.session import MAX_THREADS, Session
from arenite.runtime.session.stated import (
    ArenaMemory,
    SessionMemory,
    SessionPort,
    StepProfile,
    Tuned,
)

__all__ = [
    "MAX_THREADS",
    "ArenaMemory",
    "Session",
    "SessionMemory",
    "SessionPort",
    "StepProfile",
    "Tuned",
]
