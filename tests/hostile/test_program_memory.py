"""The hostile program files under valgrind, which sees into shared libraries.

Sanitizers see what was compiled with them: not libraries that are installed.
"""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from support.c_library import environment, install, run
from support.edited_programs import edited, flipped
from support.hostile_edits import EDITS
from support.hostile_steps import CASES, SOUND, changed
from support.tiny_programs import classifier

FAULT = 99
OVERREAD = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  volatile char* bytes = malloc(8);
  bytes[0] = 1;
  return bytes[8] > 100;
}
"""


def under_valgrind(program, given=""):
    """What a program did; its exit code is FAULT if it touched what is not its own.

    Memory that goes back by another way than it came, such as `free` for `new`, counts too.
    """
    return subprocess.run(
        ["valgrind", "--quiet", f"--error-exitcode={FAULT}", "--leak-check=no", program],
        input=given, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles a C program against the installed library, or skips."""
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    prefix = install()
    folder = tmp_path_factory.mktemp("memory")
    flags = run(["pkg-config", "--cflags", "--libs", "arenite"], env=environment(prefix)).stdout

    def compiled(source):
        program = folder / source.stem
        place = f"-Wl,-rpath,{prefix / 'lib'}"
        run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-g", source, "-o", program,
             *flags.split(), place])  # fmt: skip
        return program

    return compiled


@pytest.fixture
def corpus(assembly, valid, tmp_path):
    """The bytes of every hostile file by name, and of sound ones."""
    files = {f"sound {name}": step.to_bytes() for name, step in SOUND.items()}
    for name, (edit, _) in EDITS.items():
        files[f"edit {name}"] = edited(assembly, edit)
    for name, (which, changes, _) in CASES.items():
        files[f"step {name}"] = changed(SOUND[which], changes).to_bytes()
    generator = random.Random(1)
    for kind, data in (
        ("many kinds", valid),
        ("numbers", classifier(tmp_path, quantised=False).read_bytes()),
        ("integers", classifier(tmp_path, quantised=True).read_bytes()),
    ):
        files[f"sound {kind}"] = data
        for index in range(100):
            files[f"flipped {kind} {index}"] = flipped(data, generator)
    return files


def test_hostile_programs_touch_no_memory_but_their_own(compiled, corpus, tmp_path):
    paths = []
    for index, (name, data) in enumerate(corpus.items()):
        path = tmp_path / f"{index} {name}.arena"
        path.write_bytes(data)
        paths.append(path)
    program = compiled(Path(__file__).with_name("load_files.c"))
    done = under_valgrind(program, "".join(f"{path}\n" for path in paths))
    assert done.returncode == 0, done.stderr
    num_files, num_run = (int(word) for word in done.stdout.split() if word.isdigit())
    assert num_files == len(paths)
    num_sound = sum(name.startswith("sound") for name in corpus)
    assert num_run >= num_sound


def test_an_overread_is_noticed(compiled, tmp_path):
    source = tmp_path / "overread.c"
    source.write_text(OVERREAD)
    assert under_valgrind(compiled(source)).returncode == FAULT
