"""Write a plan file as a C header: python plan_to_header.py PLAN.json > plan.h"""

import re
import sys
from pathlib import Path

from arenite.planner import planfile

plan_file = planfile.read(Path(sys.argv[1]))  # refuses a wrong plan
records = plan_file.problem.records
memories = plan_file.problem.memories
macros = [re.sub(r"\W", "_", record.name).upper() for record in records]
prefixes = [re.sub(r"\W", "_", memory.name).upper() for memory in memories]
if len(set(macros)) < len(macros) or len(set(prefixes)) < len(prefixes):
    sys.exit("two records or two memories would have the same name in C")

print("#pragma once")
for prefix, memory, height in zip(prefixes, memories, plan_file.plan.heights, strict=True):
    alignments = (record.alignment for record in records if record.memory == memory.name)
    print(f"#define {prefix}_BYTES {height}")
    print(f"#define {prefix}_ALIGNMENT {max(alignments, default=memory.alignment)}")
for macro, offset in zip(macros, plan_file.plan.offsets, strict=True):
    print(f"#define OFFSET_{macro} {offset}")
