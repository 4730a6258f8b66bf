"""Strategies that place records, orders of steps, bands of rows, and policies.

Other packages import the names of `__all__` and nothing else from here:

- `STRATEGIES`, `Best`, `find`, `known`: strategies that place records;
- `ORDERS`, `find_order`: orders of a program's steps;
- `POLICIES`, `find_policy`, `known_policies`: policies, which recompute and spill tensors;
- `BandsSearch`, `StripsSearch`, `quickest_over`: programs in bands of rows within a budget, also
  in strips of columns, also over several memories; `InBands` and `OverMemories` are notes of their
  candidates, `BandsLimitError` and `MemoriesLimitError` are raised where none fits;
- `bands_for_cache`: a program in bands whose tensors stay in a cache;
- `describe_bands`, `rebuild_bands`: programs in bands, into plan files and from them;
- `binding_of`, `Held`, `owners_of`, `Region`: the limit of a program in bands, and its parts;
- `Spread`, `spread`: records over several memories;
- `deadline`, `time_is_up`: time limits.
"""

from typing import TYPE_CHECKING

from arenite.planner.lazy import lazily

if TYPE_CHECKING:
    from arenite.strategies.bands.binding import BandsLimitError, Held, binding_of, owners_of
    from arenite.strategies.bands.cache import bands_for_cache
    from arenite.strategies.bands.memories_search import (
        MemoriesLimitError,
        OverMemories,
        quickest_over,
    )
    from arenite.strategies.bands.plan_files import describe_bands, rebuild_bands
    from arenite.strategies.bands.regions import Region
    from arenite.strategies.bands.search import BandsSearch, InBands
    from arenite.strategies.bands.strips_search import StripsSearch
    from arenite.strategies.best import Best
    from arenite.strategies.memories.spread import Spread, spread
    from arenite.strategies.order.table import ORDERS, find_order
    from arenite.strategies.policies import POLICIES, find_policy, known_policies
    from arenite.strategies.table import STRATEGIES, find, known
    from arenite.strategies.time_limits import deadline, time_is_up
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    "ORDERS", "POLICIES", "STRATEGIES", "BandsLimitError", "BandsSearch", "Best", "Held",
    "InBands", "MemoriesLimitError", "OverMemories", "Region", "Spread", "StripsSearch",
    "bands_for_cache", "binding_of", "deadline", "describe_bands", "find", "find_order",
    "find_policy", "known", "known_policies", "owners_of", "quickest_over", "rebuild_bands",
    "spread", "time_is_up",
]  # fmt: skip
