#include "gap_search.hpp"

#include <algorithm>
#include <limits>

#include "live_index.hpp"

namespace arenite {
namespace {

std::int64_t align_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

struct Block {
  std::int64_t offset;
  std::int64_t end;
  int turn;  // when it was placed
};

std::int64_t lowest_gap(const std::vector<Block>& blocks, std::int64_t size,
                        std::int64_t alignment) {
  std::int64_t cursor = 0;
  for (const Block& block : blocks) {
    if (block.offset - cursor >= size) return cursor;
    cursor = std::max(cursor, align_up(block.end, alignment));
  }
  return cursor;
}

std::int64_t tightest_gap(const std::vector<Block>& blocks, std::int64_t size,
                          std::int64_t alignment) {
  std::int64_t cursor = 0;
  std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
  std::int64_t best = -1;
  for (const Block& block : blocks) {
    const std::int64_t gap = block.offset - cursor;
    if (gap >= size && gap < best_gap) {
      best_gap = gap;
      best = cursor;
    }
    cursor = std::max(cursor, align_up(block.end, alignment));
  }
  return best >= 0 ? best : cursor;
}

// A candidate is compared by its gap above the aligned cursor but remembered by its gap
// above the unaligned one, so a later gap that is no tighter can replace it.
std::int64_t tightest_gap_tflite_cpu(const std::vector<Block>& blocks, std::int64_t size,
                                     std::int64_t alignment) {
  std::int64_t cursor = 0;
  std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
  std::int64_t best = -1;
  for (const Block& block : blocks) {
    const std::int64_t aligned = align_up(cursor, alignment);
    if (aligned + size <= block.offset && block.offset - aligned < best_gap) {
      best = aligned;
      best_gap = block.offset - cursor;
    }
    cursor = std::max(cursor, block.end);
    if (best_gap == 0) break;
  }
  return best >= 0 ? best : align_up(cursor, alignment);
}

std::int64_t top(const std::vector<Block>& blocks, std::int64_t alignment) {
  std::int64_t cursor = 0;
  for (const Block& block : blocks) cursor = std::max(cursor, align_up(block.end, alignment));
  return cursor;
}

std::int64_t choose(Fit fit, const std::vector<Block>& blocks, std::int64_t size,
                    std::int64_t alignment) {
  switch (fit) {
    case Fit::kFirst: return lowest_gap(blocks, size, alignment);
    case Fit::kBest: return tightest_gap(blocks, size, alignment);
    case Fit::kBestTfliteCpu: return tightest_gap_tflite_cpu(blocks, size, alignment);
    case Fit::kTop: return top(blocks, alignment);
  }
  return 0;
}

}  // namespace

std::vector<std::int64_t> place_in_order(const std::vector<UsageRecord>& records,
                                         const std::vector<int>& order, Fit fit,
                                         const std::function<bool()>& poll) {
  std::vector<std::int64_t> offsets(records.size(), 0);
  std::vector<int> turns(records.size(), 0);
  LiveIndex placed(records);
  int turn = 0;
  const auto put = [&](int record, std::int64_t offset) {
    offsets[record] = offset;
    turns[record] = turn++;
    placed.insert(record);
  };
  for (std::size_t record = 0; record < records.size(); ++record) {
    if (records[record].fixed >= 0) put(static_cast<int>(record), records[record].fixed);
  }
  std::vector<int> met;
  std::vector<Block> blocks;
  for (const int record : order) {
    if (records[record].fixed >= 0) continue;
    poll();
    placed.collect(record, met);
    blocks.clear();
    for (const int other : met) {
      blocks.push_back({offsets[other], offsets[other] + records[other].size, turns[other]});
    }
    std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.turn < b.turn;
    });
    put(record, choose(fit, blocks, records[record].size, records[record].alignment));
  }
  return offsets;
}

}  // namespace arenite
