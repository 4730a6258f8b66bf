"""What the scripts in this folder share: options, inputs, rounds, processes, figures, output."""

from harness.command import MissingInputsError, bench, chosen, emit, note, parser
from harness.figures import Spread, paired_ratios
from harness.machine import Machine, this_machine
from harness.processes import ProcessError, in_fresh_process, peak_rss_bytes
from harness.rounds import interleaved, mean_processor_seconds, timed
from harness.tables import table

__all__ = [
    "Machine",
    "MissingInputsError",
    "ProcessError",
    "Spread",
    "bench",
    "chosen",
    "emit",
    "in_fresh_process",
    "interleaved",
    "mean_processor_seconds",
    "note",
    "paired_ratios",
    "parser",
    "peak_rss_bytes",
    "table",
    "this_machine",
    "timed",
]
