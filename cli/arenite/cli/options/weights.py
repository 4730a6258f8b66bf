"""How the weights of a program are stored and brought into memory."""

import click

from arenite.cli.options.types import WeightBudgetType

huffman_option = click.option(
    "--huffman/--no-huffman",
    default=True,
    show_default=True,
    help="Huffman-code the weights; without it the file is larger but decodes faster.",
)
weight_budget_option = click.option(
    "--weight-budget",
    type=WeightBudgetType(),
    metavar="SIZE|N%",
    help="Keep at most this much of the weights resident; stream the rest into the arena a "
    "window at a time.",
)
