"""Options that state the stream that a model runs on."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

import click

from arenite.cli.options.types import Parsed
from arenite.pipeline.base import OptionsError, Reading
from arenite.pipeline.making import axis_of, hop_of
from arenite.runtime.rewrites import Hops, Padding

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e9:
        raise ValueError(f"{text!r} is not a number of rows a second")
    return rate


def stream_options(
    *, required: bool
) -> Callable[[Callable[Concatenate[Reading, _P], _R]], Callable[..., _R]]:
    """Return what adds the options of a stream to a command whose first argument is a `Reading`.

    Args:
        required: Whether the command takes a stream only.
    """

    def decorate(function: Callable[Concatenate[Reading, _P], _R]) -> Callable[..., _R]:
        @click.option(
            "--axis", "stream_axis", type=Parsed("axis", axis_of), required=required,
            metavar="INPUT:AXIS",
            help="Axis of time of an input, from 0, such as frames:1: a run takes a hop along it.",
        )  # fmt: skip
        @click.option(
            "--hop", "stream_hop", required=required, metavar="N|TIME",
            help="New rows at each run, or their time such as 20ms with --rate.",
        )  # fmt: skip
        @click.option(
            "--rate", "stream_rate", type=Parsed("rate", _rate), metavar="HZ",
            help="Rows a second, for a hop in milliseconds.",
        )  # fmt: skip
        @click.option(
            "--padding", "stream_padding", type=click.Choice([str(each) for each in Padding]),
            default=str(Padding.WINDOW), show_default=True,
            help="Pad each window, as the model does, or the start of the stream alone.",
        )  # fmt: skip
        @functools.wraps(function)
        def with_stream(
            reading: Reading,
            stream_axis: tuple[str, int] | None,
            stream_hop: str | None,
            stream_rate: float | None,
            stream_padding: str,
            *args: _P.args,
            **kwargs: _P.kwargs,
        ) -> _R:
            if (stream_axis is None) != (stream_hop is None):
                raise OptionsError("--axis and --hop state a stream together")
            if stream_axis is None or stream_hop is None:
                return function(reading, *args, **kwargs)
            try:
                rows = hop_of(stream_hop, stream_rate)
            except ValueError as error:
                raise OptionsError(str(error)) from error
            hops = Hops(*stream_axis, rows, Padding(stream_padding))
            return function(replace(reading, hops=hops), *args, **kwargs)

        return with_stream

    return decorate
