"""Write the operators of our runtime into the schema of program files.

scripts/write-schema.py            # after an operator was added or changed
scripts/write-schema.py --check    # fail if the schema is not up to date
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "runtime/core/program.fbs"


def main() -> int:
    """Return 0 when the schema is up to date, 1 if a check says it is not."""
    sys.path[:0] = [str(ROOT / "planner"), str(ROOT / "runtime")]
    from arenite.runtime.operators.schema import with_tables

    stated = SCHEMA.read_text()
    wanted = with_tables(stated)
    if "--check" not in sys.argv[1:]:
        SCHEMA.write_text(wanted)
    elif stated != wanted:
        print(f"{SCHEMA} is out of date: run scripts/write-schema.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
