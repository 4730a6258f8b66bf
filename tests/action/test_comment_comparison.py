"""The action comments a comparison on a pull request; a local server stands in for GitHub."""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

yaml = pytest.importorskip("yaml", reason="the extra 'docs' is not installed")

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
OLD = "id,lower,upper,size\na,0,2,64\nb,1,3,32\n"
GROWN = "id,lower,upper,size\na,0,2,64\nb,1,3,48\n"


class GitHub:
    """Comments of one pull request, with all requests that came."""

    def __init__(self) -> None:
        self.comments: list[dict[str, object]] = []
        self.requests: list[tuple[str, str, str]] = []
        self.refuses = False

    def answer(self, method: str, path: str, token: str, body: str) -> tuple[int, object]:
        self.requests.append((method, path, token))
        parts = urlsplit(path)
        if self.refuses and method != "GET":
            return 403, {"message": "Resource not accessible by integration"}
        if method == "GET":
            query = parse_qs(parts.query)
            page, size = int(query["page"][0]), int(query["per_page"][0])
            return 200, self.comments[(page - 1) * size : page * size]
        text = json.loads(body)["body"]
        if method == "POST":
            self.comments.append({"id": len(self.comments) + 1, "body": text})
            return 201, self.comments[-1]
        (found,) = [each for each in self.comments if parts.path.endswith(f"/{each['id']}")]
        found["body"] = text
        return 200, found


@pytest.fixture
def github():
    state = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status, answer = state.answer(
                self.command,
                self.path,
                self.headers["Authorization"],
                self.rfile.read(length).decode(),
            )
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def job(github, tmp_path):
    """Run the last step of the action as GitHub does, in a checkout with one model."""
    folder = tmp_path / "checkout"
    (folder / "models" / "below").mkdir(parents=True)
    model = folder / "models" / "below" / "m.csv"
    model.write_text(OLD)
    event = tmp_path / "event.json"
    event.write_text('{"pull_request": {"number": 7}}')
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)

    def run(**inputs):
        values = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        values |= {"token": "secret", "models": "models", "options": "--quick"}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        step = ACTION["runs"]["steps"][-1]
        given = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text)
            for name, text in step["env"].items()
        }
        return subprocess.run(
            [step["shell"], "-c", step["run"]],
            cwd=folder,
            env={
                **os.environ,
                **given,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_API_URL": github.url,
                "GITHUB_EVENT_PATH": str(event),
                "GITHUB_REPOSITORY": "owner/models",
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    run.model, run.folder, run.event = model, folder, event
    run.summary = tmp_path / "summary.md"
    return run


def baseline_of(job):
    path = job.folder / "baseline.json"
    made = subprocess.run(
        [sys.executable, "-m", "arenite", "compare", "models", "--quick", "--json"],
        cwd=job.folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    path.write_text(made.stdout)
    return path


def test_growth_is_commented_and_fails_the_check(job, github):
    baseline = baseline_of(job)
    job.model.write_text(GROWN)
    done = job(baseline=str(baseline.name), fail_over="2%", strategy="greedy-by-size")
    assert done.returncode == 1, done.stderr
    (comment,) = github.comments
    assert "| models/below/m.csv | 112 | 96 | **16.7 %, too much** |" in comment["body"]
    assert "error: models/below/m.csv: the lowest arena grew from 96 B to 112 B" in comment["body"]
    assert job.summary.read_text() == comment["body"]
    assert {token for _, _, token in github.requests} == {"Bearer secret"}
    assert github.requests[-1][:2] == ("POST", "/repos/owner/models/issues/7/comments")


def test_a_later_run_writes_over_its_comment_wherever_it_stands(job, github):
    github.comments = [{"id": index, "body": "talk"} for index in range(1, 151)]
    github.comments[120]["body"] = "<!-- arenite compare -->\nold"
    assert job(strategy="greedy-by-size").returncode == 0
    assert len(github.comments) == 150
    assert "| models/below/m.csv | 96 |" in github.comments[120]["body"]


def test_a_token_that_may_not_write_is_a_warning(job, github):
    github.refuses = True
    done = job(strategy="greedy-by-size")
    assert done.returncode == 0
    assert "::warning::the comparison was not commented: HTTP Error 403" in done.stdout


def test_without_token_or_pull_request_there_is_a_summary_alone(job, github):
    assert job(token="", strategy="greedy-by-size").returncode == 0
    job.event.write_text('{"ref": "refs/heads/main"}')
    assert job(strategy="greedy-by-size").returncode == 0
    assert github.requests == []
    assert job.summary.read_text().count("### Memory of the models") == 2


def test_what_the_caller_writes_is_no_command(job):
    done = job(models="'models/below/m.csv; touch pwned' models", strategy="greedy-by-size")
    assert done.returncode == 1
    assert not (job.folder / "pwned").exists()


def test_a_table_too_long_for_a_comment_loses_its_folded_part():
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "comment_comparison", ROOT / "action" / "comment_comparison.py"
    )
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    table = "| model |\n|---|\n| m |\n\n<details>" + "x" * 70_000
    body = script.comment(table, "")
    assert body.startswith(script.MARKER)
    assert "| m |" in body
    assert "<details>" not in body
    longest = script.comment("| model |\n" + "| row |\n" * 20_000, "error: e" * 20_000)
    assert len(longest) <= script.MOST_CHARACTERS
    assert "| row |" in longest


def test_every_input_of_the_action_is_used():
    text = (ROOT / "action.yml").read_text()
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", text))
    assert used == set(ACTION["inputs"])
    script = (ROOT / "action" / "comment_comparison.py").read_text()
    given = {name for step in ACTION["runs"]["steps"] for name in step["env"]}
    assert all(name in script for name in given - {"ARENITE_EXTRAS"})
