"""What policies made of a model, as figures."""

from dataclasses import asdict, dataclass

from arenite.pipeline.making.costs import StatedCosts, in_speeds

ROUNDED = "keeps tensors as 16-bit floats meanwhile: the outputs are not the same to the bit"
"""What is said of a policy that rounds."""


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """What one policy made of a model at one budget; figures are None where it made nothing.

    Attributes:
        policy: The policy's name.
        budget: The budget, as it was asked for.
        limit: The budget in bytes; None for the least.
        peak: Most bytes live at once in the memory that steps compute in.
        extra_time: Part of the time without a policy that is added.
        seconds: Predicted time of a run.
        stalled_s: Predicted time in which nothing computes.
        bytes_out: Bytes that cross the link outwards.
        bytes_back: Bytes that come back.
        num_repeated: Steps that run again.
        decide_s: Seconds that the policy took.
        reached: The fewest bytes it came to, where that is not within the budget.
        reason: Why it made nothing, if it did not.
        rounds: Whether outputs are not the same to the bit.
        wrong: Whether what it made does not stand the checks.
    """

    policy: str
    budget: str
    limit: int | None
    peak: int | None = None
    extra_time: float | None = None
    seconds: float | None = None
    stalled_s: float | None = None
    bytes_out: int | None = None
    bytes_back: int | None = None
    num_repeated: int | None = None
    decide_s: float = 0.0
    reached: int | None = None
    reason: str = ""
    rounds: bool = False
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class ModelPolicies:
    """What all policies made of a model.

    Attributes:
        model: The file.
        num_steps: Steps of the graph.
        peak: Most bytes live at once without a policy.
        working_set: Bytes of the largest step: no policy gets lower.
        seconds: Predicted time without a policy.
        stated: What predicts times.
        advice: What binds the peak.
        results: By budget, then by policy.
    """

    model: str
    num_steps: int
    peak: int
    working_set: int
    seconds: float
    stated: StatedCosts
    advice: str
    results: tuple[PolicyResult, ...]

    @property
    def whose(self) -> str:
        """Whose speeds predict times, in words."""
        link = in_speeds(self.stated.costs.link)
        return f"{self.stated.words}; link {link}, {self.stated.link_origin}"

    def as_json(self) -> dict[str, object]:
        """Return the figures."""
        link = self.stated.costs.link
        return {
            "model": self.model,
            "steps": self.num_steps,
            "peak": self.peak,
            "working_set": self.working_set,
            "seconds": self.seconds,
            "costs": self.stated.words,
            "link": {
                "out_bytes_per_s": link.out,
                "back_bytes_per_s": link.back,
                "origin": self.stated.link_origin,
            },
            "results": [asdict(result) for result in self.results],
        }
