"""The processor that this process runs on."""

from arenite.runtime import _core


def processor_name() -> str:
    """Return its name as the core finds it, for which programs are tuned.

    It is what the system states of the first core, or of the board; two models may have one name.
    """
    return _core.processor_name()
