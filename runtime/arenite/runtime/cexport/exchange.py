"""Exchanges two folders in one step, where the system can."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Final

_FROM_HERE: Final = -100  # AT_FDCWD
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_CANNOT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})


def exchange(one: Path, other: Path) -> bool:
    """Let two folders take each other's name, so that neither name is without one for a moment.

    Returns:
        False where the system or the file system cannot; nothing has changed then.

    Raises:
        OSError: It was refused.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
