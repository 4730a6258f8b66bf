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
    metavar="SIZE|N%[,in-turn|,beside]",
    help="Keep at most this much of the weights resident; stream the rest into the arena, the "
    "next window on a thread of its own while one is computed with, where windows are large. With "
    "',beside' always; with ',in-turn' the thread that computes fills one window at a time.",
)
