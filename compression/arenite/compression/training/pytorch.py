"""A check for PyTorch, which the extra `train` installs."""

from arenite.planner.errors import MissingDependencyError


def require_pytorch() -> None:
    """Check that PyTorch can be imported.

    Raises:
        MissingDependencyError: It cannot.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("torch", "train", "training a model") from error
