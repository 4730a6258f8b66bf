"""The process that one engine runs in: `python -m arenite.pipeline.contest.worker`.

It imports what its engine needs and nothing else, so its memory is that of the engine.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from arenite.pipeline.contest.engines import CONVERTED, ENGINES


def main(arguments: list[str]) -> None:
    """Load a model, run it, and write the measurements as one line of JSON.

    Args:
        arguments: Format, engine, model, inputs (`.npz`), outputs to write or "", threads,
            seconds to measure, 1 for processor time.
    """
    model_format, name, model, inputs, outputs, threads, seconds, by_processor = arguments
    if hasattr(os, "sched_setaffinity"):  # before the engine starts its threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-int(threads) :])
    with np.load(inputs) as stored:
        arrays = [stored[key] for key in stored.files]
    started = time.perf_counter()
    load = CONVERTED.get(name) or ENGINES[model_format][name]
    engine = load(Path(model), int(threads))
    loaded = time.perf_counter()
    results = engine.run(arrays)
    first = time.perf_counter()
    results = [np.array(each) for each in results]  # later ones may have other states
    for _ in range(2):  # caches, and engines that learn from a run
        engine.run(arrays)
    latencies: list[int] = []
    clock = time.process_time_ns if by_processor == "1" else time.perf_counter_ns
    preempted = _preemptions()
    end = time.perf_counter_ns() + int(float(seconds) * 1e9)
    while len(latencies) < 5 or time.perf_counter_ns() < end:
        begun = clock()
        engine.run(arrays)
        latencies.append(clock() - begun)
    preempted = _preemptions() - preempted
    if outputs:
        np.savez(outputs, *results)
    measured = {
        "load_ms": 1000 * (loaded - started),
        "first_run_ms": 1000 * (first - loaded),
        "latencies_ns": latencies,
        "num_preempted": preempted,
        "peak_rss_bytes": _peak_resident(),
        "arena_bytes": engine.arena_bytes(),
    }
    sys.stdout.write(json.dumps(measured) + "\n")


def _preemptions() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _peak_resident() -> int:
    """Return the most memory this process has held, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main(sys.argv[1:])
