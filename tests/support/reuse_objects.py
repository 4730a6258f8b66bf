"""Copy an object that the build of the Python package has, or compile it: a compiler launcher.

The same command makes the same object from sources that did not change since.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
_CORE = CHECKOUT / "runtime" / "core"
_OF_ONE_BUILD = {"-o": 1, "-MF": 1, "-MT": 1, "-MD": 0}
"""Options that say where to write, and how many words they take."""


def meaning(command: Sequence[str]) -> list[str]:
    """Return a command without a build's folder and outputs, and with the compiler resolved."""
    folder = next((word[2:] for word in command if word.endswith("/generated")), "")
    words = iter([os.path.realpath(shutil.which(command[0]) or command[0]), *command[1:]])
    kept = []
    for word in words:
        if word in _OF_ONE_BUILD:
            for _ in range(_OF_ONE_BUILD[word]):
                next(words)
        else:
            kept.append(word.replace(folder.removesuffix("generated") or "\0", "BUILD/"))
    return kept


def made_before(command: Sequence[str]) -> Path | None:
    """Return the object of the same command, if a build has one that is newer than all sources."""
    newest = max(path.stat().st_mtime_ns for path in _CORE.rglob("*"))
    for listed in (CHECKOUT / "build").glob("cp*/compile_commands.json"):
        for entry in json.loads(listed.read_text(encoding="utf-8")):
            made_by = shlex.split(entry["command"])
            made = Path(entry["directory"], made_by[made_by.index("-o") + 1])
            if (
                entry["file"] == command[-1]
                and made.exists()
                and made.stat().st_mtime_ns > newest
                and meaning(made_by) == meaning(command)
            ):
                return made
    return None


def main(command: Sequence[str]) -> int:
    """Return 0 when the object is there and so is the list of the files that it depends on."""
    made = made_before(command) if command[-1].startswith(f"{_CORE}/") else None
    if made is None:
        return subprocess.run(command, check=False).returncode
    target = command[command.index("-o") + 1]
    shutil.copyfile(made, target)
    if "-MF" in command:
        sources = " ".join(str(path) for path in _CORE.rglob("*.[ch]pp"))
        Path(command[command.index("-MF") + 1]).write_text(f"{target}: {sources}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
