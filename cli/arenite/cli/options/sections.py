"""Help in sections: the options most people want first, the others below by theme."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import click

MODEL: Final = {
    "Reading the model": (
        "target", "order_name", "dims", "shapes", "values", "boundary", "alignment",
        "aliases", "weight_budget", "activations", "cache",
    )
}  # fmt: skip
"""The options of `reading_options`."""
SEARCH: Final = {"Search": ("requested", "capacity", "memories", "time_limit_s", "seed")}


RARE: Final = frozenset({
    "values", "boundary", "alignment", "aliases", "weight_budget", "memories", "seed", "csv",
    "markdown", "trace", "compression_paths", "scheduler", "machine", "link", "huffman",
    "costs_path", "cache",
})  # fmt: skip
"""Names of parameters that only `--help-all` shows, unless a command states others."""

_ALL: Final = f"{__name__}.all"


def _show_all(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        context.meta[_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


class SectionedCommand(click.Command):
    """A command whose help groups its options, and leaves the rare ones to `--help-all`.

    Attributes:
        sections: Names of parameters below a title each; the others come first.
        rare: Names of parameters that only `--help-all` shows.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Sequence[str]] | None = None,
        rare: Collection[str] = RARE,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections or {}
        self.rare = rare
        if any(parameter.name in rare for parameter in self.params):
            self.params.append(
                click.Option(
                    ["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                    callback=_show_all, help="Show all options and exit.",
                )
            )  # fmt: skip

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        shown = {
            parameter.name: record
            for parameter in self.get_params(context)
            if isinstance(parameter, click.Option)
            and (context.meta.get(_ALL) or parameter.name not in self.rare)
            and (record := parameter.get_help_record(context)) is not None
        }
        themed = [
            (title, [shown.pop(name) for name in names if name in shown])
            for title, names in self.sections.items()
        ]
        for title, records in [("Options", list(shown.values())), *themed]:
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
