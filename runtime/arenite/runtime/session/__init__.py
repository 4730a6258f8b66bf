"""Run a model with every tensor at its planned offset."""

from arenite.runtime.session.session import MAX_THREADS, Session
from arenite.runtime.session.stated import Memory, Port, SessionMemory, StepProfile, Tuned

__all__ = ["MAX_THREADS", "Memory", "Port", "Session", "SessionMemory", "StepProfile", "Tuned"]
