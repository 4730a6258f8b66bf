"""Runs a command and notes the processor time it took: `timed_command.py LOG COMMAND ...`.

A build puts it before its compiler. It imports little, since it starts once a file.
"""

import os
import sys


def main(log: str, command: list[str]) -> int:
    """Run a command, append its seconds and what it made to a file, and return its exit code."""
    process = os.spawnvp(os.P_NOWAIT, command[0], command)
    _, status, used = os.wait4(process, 0)
    made = command[command.index("-o") + 1] if "-o" in command else command[-1]
    with open(log, "a", encoding="utf-8") as stream:  # noqa: PTH123  # imports nothing
        stream.write(f"{used.ru_utime + used.ru_stime:.3f}\t{made}\n")
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
