"""Where the weights of a program are while it runs."""

from arenite.pipeline.base.text import both, plural
from arenite.pipeline.targets.compiling import Compiled
from arenite.runtime.rewrites.streaming import weight_bytes


def weights_as_json(compiled: Compiled) -> dict[str, int]:
    """Return the bytes that stay, are streamed and in the largest window, and how many."""
    streaming = compiled.streaming
    if streaming is None:
        total = weight_bytes(compiled.program)
        return {"resident": total, "streamed": 0, "window": 0, "num_windows": 0, "at_once": 0}
    return {
        "resident": streaming.resident,
        "streamed": streaming.streamed,
        "window": streaming.window,
        "num_windows": streaming.num_tiles,
        "at_once": streaming.at_once if streaming.num_tiles else 0,
    }


def weights_rows(compiled: Compiled) -> list[tuple[str, str]]:
    """Return the same as rows of facts; none if nothing is streamed."""
    streaming = compiled.streaming
    if streaming is None:
        return []
    if not streaming.num_tiles:
        return [("weights", f"{both(streaming.resident)}, all resident: they fit the budget")]
    tiles = plural(streaming.num_tiles, "tile")
    how = (
        "two at a time, filled beside the computation"
        if streaming.at_once > 1
        else "one at a time"
    )
    return [
        ("weights", f"{both(streaming.resident)} resident, {both(streaming.streamed)} streamed"),
        ("window", f"{both(streaming.window)} in the arena, {tiles}, {how}"),
    ]
