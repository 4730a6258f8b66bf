"""Reference pages made from the code: commands, strategies, orders."""

import inspect
import re
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pkgutil import walk_packages

from click.testing import CliRunner

from arenite import compression, planner, runtime, training
from arenite import strategies as strategies_package
from arenite.cli.group import arenite, commands
from arenite.planner import Problem, Strategy, StrategyKind
from arenite.planner.programs import OrderStrategy
from arenite.strategies import ORDERS, STRATEGIES, known_policies

_TITLES = {
    StrategyKind.OFFSETS: "An offset for each record",
    StrategyKind.OBJECTS: "A whole buffer for each record",
}


def command_line() -> str:
    """Return the help of every command."""
    parts = [_help()]
    for name, _ in commands():
        parts.append(f"## {name}\n\n{_help(name)}")
    return "\n\n".join(parts)


def _help(*command: str) -> str:
    result = CliRunner().invoke(
        arenite,
        [*command, "--help"],
        prog_name="arenite",
        terminal_width=80,
        catch_exceptions=False,
    )
    return f"```text\n{result.output}```"


def strategies() -> str:
    """Return the table of strategies, then each with its docstring, by kind."""
    parts = [_table(STRATEGIES)]
    for kind, title in _TITLES.items():
        parts.append(f"## {title}")
        parts += [_entry(strategy) for strategy in STRATEGIES if strategy.kind is kind]
    return "\n\n".join(parts)


def orders() -> str:
    """Return the table of orders, then each with its docstring."""
    return "\n\n".join([_table(ORDERS), *(_entry(order) for order in ORDERS)])


def policies() -> str:
    """Return the table of policies."""
    lines = ["| name | decides | source |", "|---|---|---|"]
    for policy in known_policies().values():
        lines.append(f"| `{policy.name}` | {policy.decides} | {policy.source} |")
    return "\n".join(lines)


def public_names(package: str) -> str:
    """Return a reference of the public names of a package, in the order of its list."""
    names = import_module(package).__all__
    return "\n\n".join(f"::: {package}.{name}" for name in names)


def public_packages() -> str:
    """Return a table of the packages below the components that list public names."""
    lines = ["| package | public names |", "|---|---|"]
    for component in (planner, strategies_package, runtime, compression, training):
        for found in walk_packages(component.__path__, f"{component.__name__}."):
            names = getattr(import_module(found.name), "__all__", ()) if found.ispkg else ()
            if names:
                lines.append(f"| `{found.name}` | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines)


def heights(problem: Problem) -> str:
    """Return the height of each strategy's plan as a table."""
    lines = ["| strategy | decides | height, B | above the bound |", "|---|---|--:|--:|"]
    for strategy in STRATEGIES:
        plan = strategy(problem)
        gap = "optimal" if plan.optimal else f"{plan.gap:.1%}".replace("%", " %")
        lines.append(f"| `{strategy.name}` | {strategy.kind} | {plan.height} | {gap} |")
    return "\n".join(lines)


def _table(entries: Iterable[Strategy | OrderStrategy]) -> str:
    lines = ["| name | complexity | source |", "|---|---|---|"]
    for entry in entries:
        lines.append(f"| [`{entry.name}`](#{entry.name}) | {entry.complexity} | {entry.source} |")
    return "\n".join(lines)


def _entry(strategy: Strategy | OrderStrategy) -> str:
    facts = f"**Cost.** {strategy.complexity}\n\n**Source.** {strategy.source}"
    return f"### `{strategy.name}` {{ #{strategy.name} }}\n\n{_docstring(strategy)}\n\n{facts}"


def _docstring(strategy: Strategy | OrderStrategy) -> str:
    """Return a docstring in Google form as Markdown, the parameters with their defaults."""
    paragraphs = []
    for block in inspect.cleandoc(type(strategy).__doc__ or "").split("\n\n"):
        if block.startswith("Attributes:\n"):
            paragraphs.append(_parameters(strategy, block))
        else:
            paragraphs.append(block)
    return "\n\n".join(paragraphs)


def _parameters(strategy: Strategy | OrderStrategy, block: str) -> str:
    text = inspect.cleandoc("\n" + block.partition("\n")[2])
    lines = []
    for parameter in fields(strategy):  # type: ignore[arg-type]  # ours are all dataclasses
        said = re.search(rf"^{parameter.name}: (.+(?:\n +.+)*)", text, re.M)
        if said is None:
            raise ValueError(f"{strategy.name}: the docstring leaves {parameter.name!r} out")
        default = getattr(strategy, parameter.name)
        meaning = " ".join(said[1].split())
        lines.append(f"- `{parameter.name}` ({default!r}): {meaning}")
    return "**Parameters** with defaults:\n\n" + "\n".join(lines)
