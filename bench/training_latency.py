"""Training steps in our runtime beside ONNX Runtime: time of a step, and memory.

    python bench/training_latency.py [--rounds N] [--seconds S] [--json]

Steps of momentum with two images, one thread each, in fresh processes, in turn; processor time.
A ratio is the median over the rounds of our time to ONNX Runtime's: below 1 ours is faster. Memory
is the largest peak of a process, weights, momentum and interpreter included. The networks of the
digits are left out where PyTorch is not installed.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Spread, bench, emit, in_fresh_process, interleaved, note, parser, table
from harness.figures import paired_ratios
from learning.step_times import ours, theirs

if TYPE_CHECKING:  # a process that is timed imports this file, and not what writes the steps
    import onnx

_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """A step of one network.

    Attributes:
        network: Its name.
        ratio: Of our time to ONNX Runtime's.
        ours_ms: Milliseconds of a step, the median of the rounds.
        theirs_ms: The same of ONNX Runtime.
        ours_rss_bytes: Peak resident memory of our process.
        theirs_rss_bytes: The same of ONNX Runtime's.
    """

    network: str
    ratio: Spread
    ours_ms: float
    theirs_ms: float
    ours_rss_bytes: int
    theirs_rss_bytes: int


@bench
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    from learning import step_files

    options = parser(__doc__, rounds=5)
    options.add_argument("--seconds", type=float, default=_SECONDS, help="that a process measures")
    parsed = options.parse_args(arguments)
    rows = []
    for name, model, loss in step_files.networks():
        rows.append(measured(name, model, loss, parsed.rounds, parsed.seconds))
        note(name)
    emit(
        parsed,
        {"steps": rows},
        table(
            "A step of training beside ONNX Runtime",
            ("network", "ratio", "ours, ms", "ONNX Runtime, ms", "ours, B", "ONNX Runtime, B"),
            [
                (r.network, r.ratio.text(), f"{r.ours_ms:.2f}", f"{r.theirs_ms:.2f}",
                 f"{r.ours_rss_bytes:,}", f"{r.theirs_rss_bytes:,}")
                for r in rows
            ],
        ),
    )  # fmt: skip
    return 0


def measured(name: str, model: "onnx.ModelProto", loss: str, rounds: int, seconds: float) -> Row:
    """Return the figures of one network."""
    from learning import step_files

    with tempfile.TemporaryDirectory() as folder:
        step_files.prepare(Path(folder), model, loss)
        found = interleaved(
            {
                each.__name__: partial(in_fresh_process, each, folder, seconds)
                for each in (ours, theirs)
            },
            rounds,
        )
    times = {key: [second for second, _ in each] for key, each in found.items()}
    peaks = {key: max(peak for _, peak in each) for key, each in found.items()}
    return Row(
        name,
        paired_ratios(times["ours"], times["theirs"]),
        1e3 * Spread.of(times["ours"]).median,
        1e3 * Spread.of(times["theirs"]).median,
        peaks["ours"],
        peaks["theirs"],
    )


if __name__ == "__main__":
    sys.exit(main())
