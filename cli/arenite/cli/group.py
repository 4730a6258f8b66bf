"""The group `arenite`: its commands by name, each imported when it is asked for."""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

import click


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is not imported yet.

    Attributes:
        module: Where it is, below `arenite.cli.commands`.
        summary: Its line in the help of the group.
    """

    module: str
    summary: str

    def load(self, name: str) -> click.Command:
        module = import_module(f"arenite.cli.commands.{self.module}")
        command = getattr(module, name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command


SECTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Plan": {
        "inspect": Entry("inspect.command", "Show what a model needs and what limits it."),
        "plan": Entry("plan", "Plan the memory of a model."),
        "verify": Entry("verify", "Check a plan, on its own or against its model."),
        "compare": Entry("compare.command", "Compare all strategies on one or more models."),
        "fit": Entry("fit.command", "Fit a model into a budget of memory."),
        "calibrate": Entry(
            "calibrate", "Benchmark this machine for the latency estimates of fit."
        ),
        "strategies": Entry("strategies", "List the strategies."),
    },
    "Run": {
        "build": Entry("build", "Build a model, its plan and its weights into one file."),
        "stream": Entry("stream", "Build a model over time so that a run takes a hop."),
        "system": Entry("system", "Plan several models in one arena, and build them."),
        "run": Entry("run.command", "Run a model once, or a training step many times."),
        "generate": Entry("generate", "Continue a text by a decoder, token by token."),
        "bench": Entry("bench", "Measure a model on our runtime and on others."),
    },
    "Train": {"train": Entry("train", "Make the training step of a model.")},
    "Shrink and export": {
        "compress": Entry("compress.command", "Compress the weights of a model."),
        "annotate": Entry("annotate", "Write the plan of an ONNX model into its metadata."),
        "export": Entry("export.command", "Export a planned model for another runtime."),
        "tflm-arena": Entry("tflm_arena", "Size the arena for TensorFlow Lite Micro."),
    },
}
"""The commands, as the help of the group lists them."""

GLANCE: Final = Entry("glance", "Show the memory of a model, and commands to try next.")
"""What runs where a file stands in the place of a command."""

ENTRIES: Final = {name: entry for part in SECTIONS.values() for name, entry in part.items()}

_SUFFIXES: Final = (".onnx", ".tflite", ".csv")


class LazyGroup(click.Group):
    """A group whose commands are imported by name: help and version need none of them."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(ENTRIES)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        entry = ENTRIES.get(name)
        return None if entry is None else entry.load(name)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names, or `glance` if it names a file."""
        first = args[0]
        if first not in ENTRIES and _is_file(first):
            return "", GLANCE.load("glance"), args
        return super().resolve_command(context, args)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, ENTRIES))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), entry.summary) for name, entry in section.items()]
                )


def _is_file(word: str) -> bool:
    """Tell whether a word names a model, be it there or not, or another file that is there."""
    return Path(word).suffix.lower() in _SUFFIXES or Path(word).is_file()


def commands() -> Iterator[tuple[str, click.Command]]:
    """Import all commands and yield them by name."""
    for name, entry in ENTRIES.items():
        yield name, entry.load(name)


_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


@contextmanager
def _log_to_stderr(verbosity: int) -> Iterator[None]:
    """Show the log of all components while the block runs.

    Args:
        verbosity: 0 for warnings, 1 for progress, 2 and above for details.
    """
    logger = logging.getLogger("arenite")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    previous = logger.level
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
    try:
        yield
    finally:
        logger.setLevel(previous)
        logger.removeHandler(handler)


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("arenite")
    except PackageNotFoundError:
        number = "(not installed)"
    click.echo(f"arenite {number}")
    context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@click.option("-v", "--verbose", count=True, help="Log to standard error; repeat for more detail.")
@click.pass_context
def arenite(context: click.Context, verbose: int) -> None:
    """Plan, run and shrink neural networks in as little memory as possible.

    A MODEL is an .onnx or .tflite file, or a .csv of buffers to place
    (id,lower,upper,size; a buffer is live from lower to just before upper). 'arenite MODEL' alone
    says what it needs, what it could need, and what to try next.

    Results go to standard output, everything else to standard error.
    """
    context.with_resource(_log_to_stderr(verbose))
