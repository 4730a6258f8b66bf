"""The `arenite` command: how every failure becomes one line and an exit code.

::

    0    done, an interrupted search that kept its best plan among it
    1    expected failure: an `AreniteError`, or the system refused a file or memory
    2    usage
    130  interrupted
    141  the reader of standard output went away

This module imports what every interpreter has loaded already: Ctrl-C while the rest is imported
ends like any other, but native modules are loaded to their end first: many crash on an exception.
"""

import os
import sys

TYPE_CHECKING = False  # as type checkers know it; `typing` would take a good part of the start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from sys import UnraisableHookArgs
    from types import FrameType, ModuleType

FAILURE = 1
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: "Sequence[str]") -> int:
    """Run the command line and return its exit code.

    Args:
        argv: The arguments, without the program's name.
    """
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return _interrupted()


def _interrupted() -> int:
    sys.stderr.write("interrupted\n")
    return INTERRUPTED


def _interrupt_again(ignored: "UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that Python ignores: it arrived in a callback, such as one of an import."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    import _thread
    import time
    from signal import SIGINT, pthread_kill

    thread = _thread.get_ident()

    def later() -> None:
        time.sleep(0.01)  # after the callback
        pthread_kill(thread, SIGINT)

    _thread.start_new_thread(later, ())


def _load_native_modules_whole() -> None:
    """Delay Ctrl-C while a native module is loaded, in this whole process."""
    import signal
    from functools import wraps
    from importlib.machinery import ExtensionFileLoader

    def whole(load: "Callable[..., ModuleType | None]") -> "Callable[..., ModuleType | None]":
        @wraps(load)
        def loaded(*given: object) -> "ModuleType | None":
            previous = signal.getsignal(signal.SIGINT)
            arrived: list[tuple[int, FrameType | None]] = []
            try:
                signal.signal(signal.SIGINT, lambda *signalled: arrived.append(signalled))
            except ValueError:  # no signal arrives in this thread
                return load(*given)
            try:
                return load(*given)
            finally:
                signal.signal(signal.SIGINT, previous)
                if arrived and callable(previous):
                    previous(*arrived[0])

        return loaded

    for name in ("create_module", "exec_module"):
        setattr(ExtensionFileLoader, name, whole(getattr(ExtensionFileLoader, name)))


def _run(argv: "Sequence[str]") -> int:
    import click

    from arenite.cli.group import arenite
    from arenite.pipeline.base import OptionsError
    from arenite.planner import AreniteError

    try:
        with arenite.make_context("arenite", list(argv), obj=tuple(argv)) as context:
            arenite.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OptionsError as error:
        name = context.invoked_subcommand or ""
        command = arenite.get_command(context, name) or arenite
        usage = click.UsageError(str(error), click.Context(command, context, name))
        usage.show()
        return usage.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except BrokenPipeError:
        return BROKEN_PIPE
    except AreniteError as error:
        return _failure(str(error))
    except OSError as error:
        named = (error.filename, error.strerror)
        return _failure(": ".join(str(each) for each in named if each is not None) or str(error))
    except MemoryError as error:  # a model may state sizes that no machine has
        return _failure(f"out of memory: {error}".rstrip(": "))
    return 0


def _failure(reason: str) -> int:
    import click

    from arenite.pipeline.base import one_line

    click.echo(one_line(f"error: {reason}"), err=True)
    return FAILURE


def _streams_are_open() -> bool:
    """Tell whether standard output is open; if not, print an error.

    A standard stream that is closed becomes the null device: the next file to be opened would
    take its number, and what any library prints would land in that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        sys.stderr.write("error: standard output is closed\n")
        return False
    return True


def entry_point() -> None:
    """Run the command line of this process and exit."""
    try:
        sys.unraisablehook = _interrupt_again
        code = _main_of_process()
    except KeyboardInterrupt:
        code = _interrupted()
    sys.exit(code)


def _main_of_process() -> int:
    if not _streams_are_open():
        return FAILURE
    from io import TextIOWrapper

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow encoding garbles, never fails
    _load_native_modules_whole()
    code = main(sys.argv[1:])
    if code == BROKEN_PIPE:  # nothing is left to flush to, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
