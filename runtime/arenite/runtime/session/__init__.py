"""Run a model with every tensor at its planned offset."""

from arenite.runtime.session.options import MAX_THREADS
from arenite.runtime.session.ports import Port
from arenite.runtime.session.session import Session
from arenite.runtime.session.stated import Memory, SessionMemory, StepProfile, Tuned

__all__ = ["MAX_THREADS", "Memory", "Port", "Session", "SessionMemory", "StepProfile", "Tuned"]
