"""Runs TensorFlow Lite Micro's interpreter for `measure`, as a program of its own.

The interpreter ends the process where an arena is far too small, so every attempt is
forked. Reads one job and writes one answer, both JSON. Imports nothing of ours: it must
run wherever the interpreter does.
"""

import base64
import contextlib
import functools
import hashlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tflite_micro.python.tflite_micro.runtime import Interpreter

GRANULE = 16
MAX_ARENA = 2**30
ATTEMPT_S = 30
"""Seconds after which an attempt is ended: the interpreter trusts files, and may never end."""


class AttemptError(Exception):
    """An attempt that failed, with the interpreter's last message."""


def attempt(function: Callable[[], Any]) -> Any:
    """Return the result of `function`, called in a separate process.

    Raises:
        AttemptError: It raised, or the process died.
    """
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as words:
        process = os.fork()
        if process == 0:
            code = 1
            signal.alarm(ATTEMPT_S)
            try:
                os.dup2(words.fileno(), 2)
                answer.write(json.dumps(function()).encode())
                answer.flush()
                code = 0
            except BaseException as error:  # every error ends with this process
                os.write(2, f"{error}\n".encode())
            os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        answer.seek(0)
        words.seek(0)
        if status == 0:
            return json.loads(answer.read())
        if status == -signal.SIGALRM:
            raise AttemptError(f"the interpreter did not finish within {ATTEMPT_S} s")
        lines = words.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        ending = f"killed by signal {-status}" if status < 0 else f"exit code {status}"
        raise AttemptError("; ".join(said[-3:]) or ending)


def allocations(interpreter: Interpreter) -> dict[str, Any]:
    """Return the bytes of head, tail and total, and of the parts of the tail.

    It only prints them.
    """
    with tempfile.TemporaryFile() as printed:
        stderr = os.dup(2)
        os.dup2(printed.fileno(), 2)
        try:
            interpreter.print_allocations()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        printed.seek(0)
        text = printed.read().decode()
    sizes = {
        name: int(size) for name, size in re.findall(r"Arena allocation (\w+) (\d+) bytes", text)
    }
    kept = {name: int(size) for name, size in re.findall(r"'([^']+)' used (\d+) bytes", text)}
    return {**sizes, "kept": kept}


def load(data: bytes, arena_bytes: int) -> Interpreter:
    """Return an interpreter that has allocated its arena."""
    return Interpreter.from_bytes(data, arena_size=arena_bytes)


def outputs(interpreter: Interpreter, job: dict[str, Any]) -> str:
    """Return a digest of all outputs for random inputs, one run after the other."""
    random = np.random.default_rng(job["seed"])
    digest = hashlib.sha256()
    for _ in range(job["num_runs"]):
        for index in range(job["num_inputs"]):
            details = interpreter.get_input_details(index)
            interpreter.set_input(drawn(random, details["shape"], details["dtype"]), index)
        interpreter.invoke()
        for index in range(job["num_outputs"]):
            digest.update(np.ascontiguousarray(interpreter.get_output(index)).tobytes())
    return digest.hexdigest()


def drawn(random: np.random.Generator, shape: Any, dtype: Any) -> Any:
    """Return an array of random elements, over the whole range of an integer type."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return random.integers(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return random.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    return random.standard_normal(shape).astype(kind)


def with_room(
    run: Callable[[int], dict[str, Any]], arena_bytes: int
) -> tuple[int, dict[str, Any]]:
    """Return an arena size that is large enough, and the result of `run` in it."""
    while True:
        try:
            return arena_bytes, attempt(functools.partial(run, arena_bytes))
        except AttemptError:
            if arena_bytes >= MAX_ARENA:
                raise
            arena_bytes = min(4 * arena_bytes, MAX_ARENA)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Return the arena of a model, the smallest that works, and a digest of the outputs."""
    data = Path(job["model"]).read_bytes()

    def full(arena_bytes: int) -> dict[str, Any]:
        interpreter = load(data, arena_bytes)
        digest = outputs(interpreter, job)
        return {**allocations(interpreter), "outputs": digest}

    arena_bytes, result = with_room(full, job["arena_bytes"])

    def loads(granules: int) -> bool:
        with contextlib.suppress(AttemptError):
            return bool(attempt(lambda: load(data, granules * GRANULE) is not None))
        return False

    low, high = 0, -(-arena_bytes // GRANULE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if loads(middle) else (middle, high)
    smallest = high * GRANULE
    if attempt(lambda: full(smallest))["outputs"] != result["outputs"]:
        raise AttemptError(f"the outputs change when the arena shrinks to {smallest} B")
    return {**result, "smallest": smallest}


def scratch(job: dict[str, Any]) -> dict[str, Any]:
    """Return the head of each model that is one of the fronts before the body."""
    body = Path(job["body"]).read_bytes()

    def head(front: str) -> int | None:
        data = base64.b64decode(front) + body
        try:
            return int(attempt(lambda: allocations(load(data, job["arena_bytes"]))["head"]))
        except AttemptError:
            return None

    return {"heads": [head(front) for front in job["fronts"]]}


def main() -> None:
    """Answer the job on standard input."""
    job = json.load(sys.stdin)
    task = {"measure": measure, "scratch": scratch}[job["task"]]
    try:
        answer = task(job)
    except AttemptError as error:
        answer = {"failure": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
