"""A real cluster of two workers, one of which is killed at its work."""

import json
import signal
import subprocess
import sys
import threading
import time
from random import Random

import pytest

from arenite.cli.main import main

distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

NUM_MODELS = 12
SECONDS = 60


@pytest.fixture
def models(tmp_path):
    random = Random(0)
    folder = tmp_path / "models"
    folder.mkdir()
    for model in range(NUM_MODELS):
        births = [random.randrange(150) for _ in range(200)]
        rows = "".join(
            f"{index},{birth},{birth + random.randrange(1, 40)},{random.randrange(1, 10**6)}\n"
            for index, birth in enumerate(births)
        )
        (folder / f"{model:02}.csv").write_text("id,lower,upper,size\n" + rows)
    return folder


def spawn(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def cluster(tmp_path):
    """Yield the scheduler's address and the processes of its two workers."""
    contact = tmp_path / "scheduler.json"
    scheduler = spawn(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(contact),
    )  # fmt: skip
    workers = [
        spawn(
            "worker", "--scheduler-file", str(contact), "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--local-directory", str(tmp_path),
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        # The scheduler makes the file before it writes it.
        wait_for(lambda: contact.exists() and contact.read_text())
        address = json.loads(contact.read_text())["address"]
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=SECONDS)
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def wait_for(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def without_times(text):
    document = json.loads(text)
    for model in document["models"]:
        for result in model["results"]:
            del result["seconds"]
    return document


def test_a_worker_killed_half_way_loses_nothing(models, cluster, capsys):
    address, workers = cluster
    command = ["compare", "--quick", "--json", str(models)]
    with distributed.Client(address, set_as_default=False) as client:

        def kill_one_at_work():
            wait_for(lambda: num_done(client) >= NUM_MODELS // 4)
            done_at_death.append(num_done(client))
            workers[0].send_signal(signal.SIGKILL)

        done_at_death: list[int] = []
        killer = threading.Thread(target=kill_one_at_work)
        killer.start()
        code = main([*command, "--scheduler", address])
        killer.join()
    there = capsys.readouterr().out
    assert code == 0
    assert workers[0].wait(SECONDS) == -signal.SIGKILL
    assert done_at_death[0] < NUM_MODELS
    assert main(command) == 0
    here = capsys.readouterr().out
    assert len(json.loads(here)["models"]) == NUM_MODELS
    assert without_times(there) == without_times(here)


def num_done(client):
    return client.run_on_scheduler(_num_in_memory)


def _num_in_memory(dask_scheduler):
    return sum(task.state == "memory" for task in dask_scheduler.tasks.values())


def test_an_address_without_a_scheduler_is_said(models, capsys):
    assert main(["compare", "--quick", "--scheduler", "nonsense://", str(models)]) == 1
    assert "the scheduler cannot be reached" in capsys.readouterr().err
