"""Run steps again, and move tensors to another memory and back, as a schedule says.

The result is an ordinary program. A step that runs again is a second step with tensors of its
own, and a transfer is a step on the lane of a link, so nothing after this rewrite knows of it.
"""

from arenite.planner.rewrites.rescheduling.peak import peak_of, problem_of
from arenite.planner.rewrites.rescheduling.rewrite import SPILLED, reschedule
from arenite.planner.rewrites.rescheduling.schedule import Move, Schedule

__all__ = ["SPILLED", "Move", "Schedule", "peak_of", "problem_of", "reschedule"]
