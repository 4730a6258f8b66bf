"""Options that exclude each other."""

import click
from click.core import ParameterSource


def refuse_beside(what: str, *names: str) -> None:
    """Return if the user gave none of these parameters of the command that runs.

    Args:
        what: Decides what they would.
        names: Of the parameters.

    Raises:
        UsageError: One is given.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"{what} decides what {parameter.opts[-1]} would; leave that option out"
            )
