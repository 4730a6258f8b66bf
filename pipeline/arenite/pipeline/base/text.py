"""Numbers formatted for people, and names from untrusted files made printable."""

from arenite.planner import Plan
from arenite.planner.units import format_size


def grouped(number: int) -> str:
    """Return the number with its thousands separated."""
    return f"{number:,}"


def exact(size: int) -> str:
    return f"{size:,} B"


def both(size: int) -> str:
    """Return exact bytes with a handier unit beside."""
    return exact(size) if abs(size) < 1024 else f"{exact(size)} ({format_size(size)})"


def percent(share: float) -> str:
    """Return a share as a percentage; a gap is never rounded to none."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"


def gap(size: int, bound: int) -> str:
    """Return how far `size` is above `bound`, as a percentage of it."""
    return percent(size / bound - 1 if bound else 0.0)


def distance(plan: Plan) -> str:
    """Return how far a plan is above its bound, in a few words."""
    return "optimal" if plan.optimal else f"{gap(plan.height, plan.lower_bound)} above the bound"


def change(stock: int, ours: int) -> str:
    """Return bytes with and without us, and how far they are apart."""
    if stock == ours:
        return f"{both(stock)} as in stock"
    sign = "less" if ours < stock else "more"
    return f"{both(stock)} -> {both(ours)}, {percent(abs(1 - ours / stock))} {sign}"


def duration(seconds: float) -> str:
    """Return seconds as far as a person compares them."""
    if seconds < 0.00005:
        return "< 0.1 ms"
    return f"{1000 * seconds:.1f} ms" if seconds < 0.99995 else f"{seconds:.1f} s"


def plural(number: int, noun: str) -> str:
    """Return how many there are of a regular noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def printable(text: str) -> str:
    """Return `text` with everything a terminal would act on escaped."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )


def one_line(text: str) -> str:
    """Return `text` on one printable line."""
    return printable(" ".join(text.splitlines()))


def elided(text: str, length: int) -> str:
    """Return `text` with its middle left out where it is longer than `length`."""
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"
