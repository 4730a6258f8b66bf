"""Work in fresh processes: a peak of memory of its own, and a crash that harms nobody else."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


class ProcessError(Exception):
    """Work in a process of its own failed, or the process crashed."""


def in_fresh_process(function: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a function of a module returns in a new interpreter.

    Raises:
        ProcessError: It raised an error, whose message this carries, or ended the process.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, function, arguments))
    process.start()
    sender.close()  # so that the end of the process is the end of the pipe
    try:
        is_done, answer = receiver.recv()
    except EOFError:
        process.join()
        raise ProcessError(_ending(process.exitcode)) from None
    finally:
        receiver.close()
    process.join()
    if not is_done:
        raise ProcessError(answer)
    result: Result = answer
    return result


def peak_rss_bytes() -> int:
    """Return the peak resident memory of this process.

    Not by `getrusage`, whose figure includes the process that started this one.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def _answer(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer = (True, function(*arguments))
    except Exception as error:  # whatever it is, the other process has to be told
        words = str(error).strip().splitlines() or [""]
        answer = (False, words[0] or type(error).__name__)
    sender.send(answer)


def _ending(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"the process was ended by signal {-exit_code}"
    return f"the process ended with exit code {exit_code}"
