#include "plan_allocator.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace arenite {

namespace {

constexpr std::uint32_t kVersion = 17;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kStillLive = 0;

void* from_heap(std::size_t size) {
  const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  return rounded < size ? nullptr : std::aligned_alloc(kAlignment, rounded);
}

}  // namespace

PlanAllocator::PlanAllocator() {
  version = kVersion;
  alloc = [](OrtAllocator* self, std::size_t size) {
    return static_cast<PlanAllocator*>(self)->allocate(size);
  };
  free = [](OrtAllocator* self, void* address) {
    static_cast<PlanAllocator*>(self)->release(address);
  };
  info = [](const OrtAllocator* self) {
    return static_cast<const PlanAllocator*>(self)->memory_info_;
  };
}

void PlanAllocator::start_recording() {
  const std::lock_guard lock(mutex_);
  mode_ = Mode::kRecording;
  recorded_.clear();
  recorded_live_.clear();
}

std::vector<RecordedBlock> PlanAllocator::stop_recording() {
  const std::lock_guard lock(mutex_);
  mode_ = Mode::kPassing;
  recorded_live_.clear();
  std::vector<RecordedBlock> result;
  std::copy_if(recorded_.begin(), recorded_.end(), std::back_inserter(result),
               [](const RecordedBlock& block) { return block.end != kStillLive; });
  recorded_ = {};
#ifdef __GLIBC__
  malloc_trim(0);  // what the recorded run took is not needed again
#endif
  return result;
}

void PlanAllocator::serve(std::byte* arena, std::vector<PlannedBlock> blocks) {
  const std::lock_guard lock(mutex_);
  mode_ = Mode::kServing;
  arena_ = arena;
  live_.reserve(blocks.size());
  blocks_ = std::move(blocks);
}

void PlanAllocator::start_run() {
  const std::lock_guard lock(mutex_);
  next_ = 0;
  counts_ = {};
}

RunCounts PlanAllocator::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::size_t PlanAllocator::num_calls() const {
  const std::lock_guard lock(mutex_);
  return num_calls_;
}

void* PlanAllocator::allocate(std::size_t size) {
  if (size == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  ++num_calls_;
  if (mode_ == Mode::kServing) {
    if (std::byte* address = planned(size)) return address;
  }
  void* address = from_heap(size);
  if (mode_ == Mode::kRecording && address != nullptr) note_allocation(address, size);
  return address;
}

void PlanAllocator::release(void* address) {
  if (address == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (mode_ == Mode::kServing && release_planned(static_cast<std::byte*>(address))) return;
  if (mode_ == Mode::kRecording) note_release(address);
  std::free(address);
}

std::byte* PlanAllocator::planned(std::size_t size) {
  const std::size_t call = next_++;
  if (call < blocks_.size() && size <= blocks_[call].size) {
    std::byte* const first = arena_ + blocks_[call].offset;
    std::byte* const last = first + blocks_[call].size;
    const bool in_use = std::any_of(live_.begin(), live_.end(), [&](const LiveBlock& other) {
      return first < other.last && other.first < last;
    });
    if (!in_use) {
      live_.push_back({first, last});
      ++counts_.inside;
      return first;
    }
  }
  ++counts_.outside;
  counts_.outside_bytes += size;
  return nullptr;
}

bool PlanAllocator::release_planned(std::byte* address) {
  // Live blocks share no bytes, so at most one starts here.
  const auto found = std::find_if(live_.rbegin(), live_.rend(),
                                  [&](const LiveBlock& block) { return block.first == address; });
  if (found == live_.rend()) return false;
  *found = live_.back();
  live_.pop_back();
  return true;
}

void PlanAllocator::note_allocation(void* address, std::size_t size) {
  recorded_live_.emplace(address, recorded_.size());
  recorded_.push_back({size, recorded_.size(), kStillLive});
}

void PlanAllocator::note_release(void* address) {
  const auto found = recorded_live_.find(address);
  if (found == recorded_live_.end()) return;  // taken before the recording
  recorded_[found->second].end = recorded_.size();
  recorded_live_.erase(found);
}

}  // namespace arenite
