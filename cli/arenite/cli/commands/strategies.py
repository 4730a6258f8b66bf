"""`arenite strategies`: the names that `--strategy` accepts, policies included."""

import click

from arenite.cli.console.results import Results
from arenite.cli.options.common import json_option
from arenite.cli.render.facts import policies_table, strategies_table
from arenite.planner.programs import is_exact
from arenite.strategies import known, known_policies


@click.command()
@json_option
def strategies(as_json: bool) -> None:
    """List the strategies, and the policies of compare --policies, with their sources."""
    table, policies = known().values(), known_policies().values()
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
            ],
            "policies": [
                {
                    "name": policy.name,
                    "decides": policy.decides,
                    "source": policy.source,
                    "quick": policy.quick,
                    "exact": is_exact(policy),
                }
                for policy in policies
            ],
        },
        lambda console: console.print(
            strategies_table(table), "", policies_table(policies), sep="\n"
        ),
    )
