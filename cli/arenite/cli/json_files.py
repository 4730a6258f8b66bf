"""JSON that another command wrote, read back."""

import json
from pathlib import Path
from typing import Any

from arenite.planner.errors import FileError


def read_json(path: Path, most_mebibytes: int, error: type[FileError]) -> Any:
    """Return what a file holds, of whatever shape.

    Args:
        path: The file.
        most_mebibytes: A larger file is not read.
        error: Is raised where the file cannot be read, is too large, or is not JSON.
    """
    try:
        if path.stat().st_size > most_mebibytes << 20:
            raise error(f"larger than {most_mebibytes} MiB", path=path)
        return json.loads(path.read_bytes())
    except OSError as reason:
        raise error(f"cannot be read: {reason.strerror}", path=path) from reason
    except (ValueError, RecursionError) as reason:
        raise error("not JSON", path=path) from reason
