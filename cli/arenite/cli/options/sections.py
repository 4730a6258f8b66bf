"""Help in sections: the options most people want first, the others below by theme."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

MODEL: Final = {
    "Reading the model": (
        "target", "order_name", "dims", "shapes", "values", "boundary", "alignment",
        "aliases", "weight_budget",
    )
}  # fmt: skip
"""The options of `reading_options`."""
SEARCH: Final = {"Search": ("requested", "capacity", "memories", "time_limit_s", "seed")}


class SectionedCommand(click.Command):
    """A command whose help groups its options.

    Attributes:
        sections: Names of parameters below a title each; the others come first.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Sequence[str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections or {}

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        shown = {
            parameter.name: record
            for parameter in self.get_params(context)
            if isinstance(parameter, click.Option)
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
