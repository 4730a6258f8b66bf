// What ONNX Runtime asks for memory: first it is recorded, then served by a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace arenite {

// The first fields of ONNX Runtime's `OrtAllocator`, as they are up to its version 17.
struct OrtAllocator {
  std::uint32_t version;
  void* (*alloc)(OrtAllocator* self, std::size_t size);
  void (*free)(OrtAllocator* self, void* address);
  const void* (*info)(const OrtAllocator* self);
};

// A block of one recorded run; time is the number of allocations before.
struct RecordedBlock {
  std::size_t size;
  std::size_t start;
  std::size_t end;
};

// Where a block of the plan lies, in the order the blocks are asked for.
struct PlannedBlock {
  std::size_t size;
  std::size_t offset;
};

struct RunCounts {
  std::size_t inside = 0;
  std::size_t outside = 0;
  std::size_t outside_bytes = 0;
};

// An allocator with three modes. *Passing*: the heap, nothing noted. *Recording*: the heap,
// each block noted. *Serving*: call k of a run gets the k-th planned block, or the heap if
// the block is too small or its bytes are still in use, so a run that differs from the
// recorded one is slower but never wrong.
//
// Any thread may allocate and free; the other methods are for the thread that runs the model.
class PlanAllocator : public OrtAllocator {
 public:
  PlanAllocator();
  PlanAllocator(const PlanAllocator&) = delete;
  PlanAllocator& operator=(const PlanAllocator&) = delete;

  void set_memory_info(const void* info) { memory_info_ = info; }
  void start_recording();
  // Ends the recording. Blocks that outlive it are left out: a later run will not ask again.
  std::vector<RecordedBlock> stop_recording();
  void serve(std::byte* arena, std::vector<PlannedBlock> blocks);
  void start_run();
  RunCounts counts() const;
  std::size_t num_calls() const;

 private:
  enum class Mode { kPassing, kRecording, kServing };

  struct LiveBlock {
    std::byte* first;
    std::byte* last;
  };

  void* allocate(std::size_t size);
  void release(void* address);
  std::byte* planned(std::size_t size);
  void note_allocation(void* address, std::size_t size);
  void note_release(void* address);
  bool release_planned(std::byte* address);

  mutable std::mutex mutex_;
  Mode mode_ = Mode::kPassing;
  const void* memory_info_ = nullptr;
  std::size_t num_calls_ = 0;

  std::vector<RecordedBlock> recorded_;
  std::unordered_map<void*, std::size_t> recorded_live_;

  std::byte* arena_ = nullptr;
  std::vector<PlannedBlock> blocks_;
  std::vector<LiveBlock> live_;
  std::size_t next_ = 0;
  RunCounts counts_;
};

}  // namespace arenite
