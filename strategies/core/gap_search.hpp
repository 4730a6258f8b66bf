// One-pass placement: records in a given order, each into a gap between those already
// placed that live at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "usage_record.hpp"

namespace arenite {

enum class Fit {
  kFirst,          // the lowest gap that is large enough
  kBest,           // the smallest gap that is large enough, the lowest of equals
  kBestTfliteCpu,  // as kBest with the bookkeeping of TFLite's SimpleMemoryArena
  kTop,            // above everything, gaps ignored
};

// Returns an offset for each record. `order` names each record once; fixed records are
// placed before all others.
//
// `poll` is called now and then; an exception that it throws ends the placement.
//
// O(n (log n + k log k)) time, where k is the number of placed records met by one.
std::vector<std::int64_t> place_in_order(
    const std::vector<UsageRecord>& records, const std::vector<int>& order, Fit fit,
    const std::function<bool()>& poll = [] { return false; });

}  // namespace arenite
