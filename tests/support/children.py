"""Functions in a forked child."""

import os
import signal
import traceback
from collections.abc import Callable


def in_child(function: Callable[[], object]) -> int:
    """Return the exit code of a forked child that calls the function; 99 if it raises."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # what waits for threads that are not there is killed
        try:
            function()
        except BaseException:
            traceback.print_exc()
            os._exit(99)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
