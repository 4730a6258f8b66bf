"""The log of a run, on standard error."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


@contextmanager
def log_to_stderr(verbosity: int) -> Iterator[None]:
    """Show the log of all components while the block runs.

    Args:
        verbosity: 0 for warnings, 1 for what is done, 2 and above for details.
    """
    logger = logging.getLogger("arenite")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    previous = logger.level
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
    try:
        yield
    finally:
        logger.setLevel(previous)
        logger.removeHandler(handler)
