"""Write a plan file as a C header: python plan_to_header.py PLAN.json > plan.h"""

import re
import sys
from pathlib import Path

from arenite.planner import planfile

plan_file = planfile.read(Path(sys.argv[1]))  # refuses a wrong plan
records = plan_file.problem.records
macros = [re.sub(r"\W", "_", record.name).upper() for record in records]
if len(set(macros)) < len(macros):
    sys.exit("two records would have the same name in C")

print("#pragma once")
print(f"#define ARENA_BYTES {plan_file.plan.height}")
print(f"#define ARENA_ALIGNMENT {max(record.alignment for record in records)}")
for macro, offset in zip(macros, plan_file.plan.offsets, strict=True):
    print(f"#define OFFSET_{macro} {offset}")
