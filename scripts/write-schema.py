"""Write the operators of our runtime into the schema of program files.

After an operator was added or changed: `.venv/bin/python scripts/write-schema.py`. With `--check`
it writes nothing and fails if the schema is not up to date; a test asks that.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "runtime/core/program.fbs"


def main() -> int:
    """Return 0 when the schema is up to date, 1 if a check says it is not."""
    parser = argparse.ArgumentParser(description="Write the operators into the schema.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it is old")
    parser.add_argument("schema", nargs="?", type=Path, default=SCHEMA)
    asked = parser.parse_args()

    sys.path[:0] = [str(ROOT / "planner"), str(ROOT / "runtime")]
    from arenite.runtime.operators import with_tables

    stated = asked.schema.read_text(encoding="utf-8")
    wanted = with_tables(stated)
    if not asked.check:
        asked.schema.write_text(wanted, encoding="utf-8")
    elif stated != wanted:
        print(f"{asked.schema} is out of date: run scripts/write-schema.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
