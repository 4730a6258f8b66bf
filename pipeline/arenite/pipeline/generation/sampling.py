"""Choose the next token from the logits of a model."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    Attributes:
        temperature: What logits are divided by; 0 for the most likely token, without chance.
        top_k: Choose among so many of the most likely tokens; 0 for all.
        top_p: Choose among the fewest of the most likely tokens whose probabilities reach this.
        seed: Of the random numbers: the same seed gives the same text.

    Raises:
        ValueError: A number is out of range.

    Source: Holtzman et al. 2020, arXiv 1904.09751, for top_p.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature is {self.temperature}; give a number from 0")
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k}; give a number of tokens, 0 for all")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; give a probability above 0, at most 1")

    def choose(self, logits: NDArray[np.floating], random: np.random.Generator) -> int:
        """Return the index of the next token.

        Args:
            logits: One for each token, (vocabulary,).
            random: Random numbers; one is drawn, none at temperature 0.

        Cost: O(vocabulary log vocabulary), O(vocabulary) at temperature 0.
        """
        if self.temperature == 0:
            return int(np.argmax(logits))
        order = np.argsort(-logits, kind="stable")
        if self.top_k:
            order = order[: self.top_k]
        scaled = logits[order].astype(np.float64) / self.temperature
        likely = np.exp(scaled - scaled[0])
        sums = np.cumsum(likely)
        if self.top_p < 1:
            kept = int(np.searchsorted(sums, self.top_p * sums[-1])) + 1
            order, sums = order[:kept], sums[:kept]
        drawn = int(np.searchsorted(sums, random.random() * sums[-1], side="right"))
        return int(order[min(drawn, len(order) - 1)])
