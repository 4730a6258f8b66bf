"""Whether PyTorch, the extra `train`, is there."""

from arenite.planner.errors import MissingDependencyError


def require_pytorch() -> None:
    """Return if PyTorch can be imported.

    Raises:
        MissingDependencyError: It cannot.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("torch", "train", "training a model") from error
