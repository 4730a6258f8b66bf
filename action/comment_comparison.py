#!/usr/bin/env python3
"""Compare models with a baseline, and say in a comment on the pull request what grew.

What `action.yml` runs. Everything comes from the environment:

    ARENITE_MODELS      files and folders, separated by spaces or lines
    ARENITE_BASELINE    what `arenite compare ... --json` wrote; empty for none
    ARENITE_FAIL_OVER   growth that fails the check, such as 2%; empty for none
    ARENITE_STRATEGY    strategy of the comparison
    ARENITE_OPTIONS     further options of `arenite compare`
    ARENITE_TOKEN       may write comments; empty for a summary of the job alone
    GITHUB_API_URL, GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_STEP_SUMMARY: set by GitHub

Ends with the exit code of `arenite compare`. One comment a pull request: a later run replaces it.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MARKER = "<!-- arenite compare -->"
MOST_CHARACTERS = 65_000
"""GitHub refuses a comment of more than 65,536."""

PER_PAGE = 100


def main(environment: Mapping[str, str]) -> int:
    """Compare, comment and return the exit code of the comparison."""
    code, table, errors = compared(environment)
    body = comment(table, errors)
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as stream:
            stream.write(body)
    token, number = environment.get("ARENITE_TOKEN"), pull_request(environment)
    if token and number is not None:
        try:
            post(environment, token, number, body)
        except (OSError, ValueError) as error:
            # A pull request from a fork has a token that may not write: the check still counts.
            print(f"::warning::the comparison was not commented: {error}")
    return code


def compared(environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Return exit code, Markdown and standard error of `arenite compare`."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "arena.md"
        command = [sys.executable, "-m", "arenite", "compare"]
        command += ["--strategy", environment.get("ARENITE_STRATEGY") or "best"]
        if baseline := environment.get("ARENITE_BASELINE"):
            command += ["--baseline", baseline]
        if most := environment.get("ARENITE_FAIL_OVER"):
            command += ["--fail-over", most]
        command += ["--markdown", str(table)]
        command += shlex.split(environment.get("ARENITE_OPTIONS", ""))
        command += ["--", *shlex.split(environment.get("ARENITE_MODELS", ""))]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        return done.returncode, table.read_text() if table.exists() else "", done.stderr


def comment(table: str, errors: str) -> str:
    """Return the comment: the table, without its folded part where that is too long."""
    said = "\n".join(line for line in errors.splitlines() if line.startswith("error:"))
    said = f"\n```text\n{said.replace('```', '')}\n```\n" if said else ""
    body = f"{MARKER}\n### Memory of the models\n\n{table}{said}"
    if len(body) <= MOST_CHARACTERS:
        return body
    rows = table.partition("\n<details>")[0]
    note = "\nThe table was too long for a comment; the job's log has all of it.\n"
    head = f"{MARKER}\n### Memory of the models\n\n"
    most = MOST_CHARACTERS - len(head) - len(note) - len(said[: MOST_CHARACTERS // 4])
    whole_rows = rows if len(rows) <= most else rows[:most].rpartition("\n")[0]
    return f"{head}{whole_rows}\n{note}{said[: MOST_CHARACTERS // 4]}"


def pull_request(environment: Mapping[str, str]) -> int | None:
    """Return the number of the pull request that the job runs for, None if it is for none."""
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        return None
    event = json.loads(Path(path).read_text(encoding="utf-8"))
    number = (event.get("pull_request") or {}).get("number")
    return number if isinstance(number, int) else None


def post(environment: Mapping[str, str], token: str, number: int, body: str) -> None:
    """Write the comment, or over the one of an earlier run.

    Raises:
        OSError: GitHub refuses it, or is not reached.
        ValueError: It answers with something else than JSON.
    """
    api = environment.get("GITHUB_API_URL", "https://api.github.com")
    comments = f"{api}/repos/{environment['GITHUB_REPOSITORY']}/issues"
    page = 1
    while True:
        found = request(
            "GET", f"{comments}/{number}/comments?per_page={PER_PAGE}&page={page}", token
        )
        for each in found:
            if str(each.get("body", "")).startswith(MARKER):
                request("PATCH", f"{comments}/comments/{each['id']}", token, body)
                return
        if len(found) < PER_PAGE:
            break
        page += 1
    request("POST", f"{comments}/{number}/comments", token, body)


def request(method: str, url: str, token: str, body: str | None = None) -> Any:
    """Return the answer to one request."""
    asked = urllib.request.Request(
        url,
        None if body is None else json.dumps({"body": body}).encode(),
        {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
        method=method,
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main(os.environ))
