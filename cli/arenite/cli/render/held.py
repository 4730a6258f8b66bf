"""What a session of our runtime holds while it is open."""

from dataclasses import asdict

from arenite.pipeline.base.text import both
from arenite.runtime.session import SessionMemory


def held_as_json(held: SessionMemory) -> dict[str, int]:
    """Return the bytes by what holds them, and their total."""
    return {**asdict(held), "total": held.total}


def held_row(held: SessionMemory) -> tuple[str, str]:
    """Return the bytes that stay beside the arena as a row of facts."""
    beside = held.total - held.memories
    return "resident", f"{both(beside)} beside the arena: weights, kernels and the program"
