"""`arenite strategies`: what can be asked for with `--strategy`."""

import click

from arenite.cli.console.output import emit_json, results
from arenite.cli.options.shared import json_option
from arenite.cli.render.tables import strategies_table
from arenite.strategies import known


@click.command()
@json_option
def strategies(as_json: bool) -> None:
    """List the strategies: name, kind, complexity, source."""
    table = known().values()
    if as_json:
        emit_json(
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
            }
        )
        return
    results().print(strategies_table(table))
