"""Networks of PyTorch, small and with something to plan, for ExecuTorch to export."""

import torch
from torch import nn


class Attention(nn.Module):  # type: ignore[misc]  # PyTorch is not read by mypy
    """One layer of a transformer."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.query, self.key, self.value, self.joined = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.scale = width**-0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the layer makes of (1, tokens, width)."""
        h = self.before(x)
        weights = torch.softmax(self.query(h) @ self.key(h).transpose(1, 2) * self.scale, -1)
        x = x + self.joined(weights @ self.value(h))
        return x + self.narrow(torch.relu(self.wide(self.between(x))))


class Branches(nn.Module):  # type: ignore[misc]  # PyTorch is not read by mypy
    """Convolutions of several widths that read each other and the image."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d, self.e, self.f, self.g = (
            nn.Conv2d(before, after, 1)
            for before, after in ((3, 4), (4, 12), (4, 16), (15, 16), (16, 4), (4, 2), (18, 24))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what they make of (1, 3, height, width)."""
        a = torch.relu(self.a(x))
        b = torch.relu(self.b(a))
        c = torch.relu(self.c(a))
        d = torch.relu(self.d(torch.cat([x, b], 1)))
        f = torch.relu(self.f(torch.relu(self.e(d))))
        return torch.relu(self.g(torch.cat([c, f], 1)))


NETWORKS = {"attention": (Attention, (1, 24, 32)), "branches": (Branches, (1, 3, 16, 16))}
"""By name, a network and the shape of its input."""
