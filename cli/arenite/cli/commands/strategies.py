"""`arenite strategies`: what `--strategy` accepts."""

import click

from arenite.cli.console.results import Results
from arenite.cli.options.output import json_option
from arenite.cli.render.tables import strategies_table
from arenite.strategies import known


@click.command()
@json_option
def strategies(as_json: bool) -> None:
    """List the strategies, with their complexity and source."""
    table = known().values()
    Results(as_json=as_json).show(
        {
            "strategies": [
                {
                    "name": strategy.name,
                    "kind": strategy.kind.value,
                    "complexity": strategy.complexity,
                    "source": strategy.source,
                    "quick": strategy.quick,
                }
                for strategy in table
            ]
        },
        lambda console: console.print(strategies_table(table)),
    )
