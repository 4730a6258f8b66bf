// A usage record as the native core sees it.
#pragma once

#include <cstdint>

namespace arenite {

// In steps and bytes; the lifetime is half-open. `fixed` is the offset that the record must
// have, or -1.
struct UsageRecord {
  std::int64_t start;
  std::int64_t end;
  std::int64_t size;
  std::int64_t alignment;
  std::int64_t fixed;
};

}  // namespace arenite
