"""What a build costs, file by file."""

import sys

from bench.harness import timed_command

WRITES = """import sys
sum(range(10**6))
open(sys.argv[2], "w").close()
sys.exit(int(sys.argv[3]))
"""


def test_a_command_is_run_and_its_processor_time_noted(tmp_path):
    log, made = tmp_path / "log", tmp_path / "made"
    command = [sys.executable, "-c", WRITES, "-o", str(made)]
    assert timed_command.main(str(log), [*command, "0"]) == 0
    assert timed_command.main(str(log), [*command, "3"]) == 3
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    assert [each[1] for each in lines] == [str(made)] * 2
    assert all(float(seconds) > 0 for seconds, _ in lines)
    assert made.exists()
