"""Small networks and data that they can learn."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import torch
    from torch import nn

    Data = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Leave the other processors alone."""
    torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def images() -> "Data":
    """96 images of 4 x 4 in three classes: which third of the pixels is the brightest."""
    torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
    generator = torch.Generator().manual_seed(1)
    pixels = torch.rand(96, 1, 4, 4, generator=generator) - 0.5
    targets = torch.arange(96) % 3
    for image, target in zip(pixels.view(96, 16), targets.tolist(), strict=True):
        image[5 * target : 5 * target + 5] += 1
    return pixels, targets


@pytest.fixture
def network() -> "nn.Module":
    """A convolution and two fully connected layers."""
    torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(2)
        return nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 8), nn.ReLU(),
            nn.Linear(8, 3),
        )  # fmt: skip
