"""Say at the end of a run why tests did not run: how many for each reason, and of which files.

A plugin of pytest, for `conftest.py`. Where a package is missing its tests are skipped, which is
right on a machine that lacks it and wrong in a gate that is thought to run everything.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

MOST_FILES: Final = 3
"""That are named for a reason."""


class Report(Protocol):
    """What pytest keeps of a test, or of a file of tests, that was skipped."""

    nodeid: str
    longrepr: object


class Terminal(Protocol):
    """Where pytest reports."""

    stats: Mapping[str, Iterable[Report]]

    def section(self, title: str) -> None:
        """Begin a section."""

    def line(self, msg: str) -> None:
        """Write a line."""


def reason_of(report: Report) -> str:
    """Return why a test was skipped, alike for all that lack the same package."""
    given = report.longrepr
    text = str(given[2] if isinstance(given, tuple) else given).removeprefix("Skipped: ")
    missing = re.match(r"could not import '(\w+)", text)
    return f"the package {missing[1]} is not installed" if missing else text


def lines(skipped: Iterable[Report]) -> list[str]:
    """Return a line for each reason, the one that most tests share first."""
    found: dict[str, list[str]] = {}
    for report in skipped:
        found.setdefault(reason_of(report), []).append(report.nodeid)
    return [
        f"{len(nodes):5}  {reason}: {_shown(nodes)}"
        for reason, nodes in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _shown(nodes: Iterable[str]) -> str:
    """Return the files of tests; without a test's name a whole file was skipped."""
    files = sorted(
        {node.partition("::")[0] + ("" if "::" in node else " (all)") for node in nodes}
    )
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    return ", ".join(files[:MOST_FILES]) + more


def pytest_terminal_summary(terminalreporter: Terminal) -> None:
    """Say which tests did not run."""
    if said := lines(terminalreporter.stats.get("skipped", ())):
        terminalreporter.section("tests that did not run, and why")
        for line in said:
            terminalreporter.line(line)
