"""The `arenite` command: its group, and how every failure becomes one line and a code.

::

    0    done, an interrupted search that kept its best plan among it
    1    expected failure: an `AreniteError`, or the system refused a file
    2    usage
    130  interrupted
    141  the reader of standard output went away
"""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from typing import Final

import click

from arenite.cli.commands.bench.command import bench
from arenite.cli.commands.build import build
from arenite.cli.commands.compare.command import compare
from arenite.cli.commands.compress.command import compress
from arenite.cli.commands.export.command import export
from arenite.cli.commands.inspect.command import inspect
from arenite.cli.commands.plan import plan
from arenite.cli.commands.run.command import run
from arenite.cli.commands.strategies import strategies
from arenite.cli.commands.tflm_arena import tflm_arena
from arenite.cli.commands.verify import verify
from arenite.cli.console.log import log_to_stderr
from arenite.cli.render.text import one_line
from arenite.planner.errors import AreniteError

FAILURE: Final = 1
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    try:
        number = version("arenite")
    except PackageNotFoundError:
        number = "(not installed)"
    click.echo(f"arenite {number}")
    context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.option("-v", "--verbose", count=True, help="Log to standard error; twice for details.")
@click.pass_context
def arenite(context: click.Context, verbose: int) -> None:
    """Plan the memory of ONNX and TFLite models.

    A MODEL is an .onnx or .tflite file, or a .csv of usage records
    (id,lower,upper,size; half-open lifetimes).
    """
    context.with_resource(log_to_stderr(verbose))


for _command in (
    inspect,
    plan,
    verify,
    compare,
    compress,
    export,
    tflm_arena,
    strategies,
    build,
    run,
    bench,
):
    arenite.add_command(_command)


def main(argv: Sequence[str]) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: The arguments, without the program's name.
    """
    try:
        with arenite.make_context("arenite", list(argv), obj=tuple(argv)) as context:
            arenite.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return BROKEN_PIPE
    except (AreniteError, OSError) as error:
        return _fail(f"error: {error}", FAILURE)
    return 0


def _fail(message: str, code: int) -> int:
    click.echo(one_line(message), err=True)
    return code


def entry_point() -> None:
    """Run the command line of this process and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow encoding garbles, never fails
    code = main(sys.argv[1:])
    if code == BROKEN_PIPE:  # nothing is left to flush to, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
