// A program ready to run: memory laid out, steps made, all set up once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arena.hpp"
#include "coding/symbols.hpp"
#include "kernels/strided_copy.hpp"
#include "mapped_file.hpp"
#include "step.hpp"
#include "tensor_view.hpp"

namespace arenite {

struct SessionOptions {
  int threads = 1;
  bool poison = false;         // fill what is dead with NaN
  bool guard = false;          // pages around the arena that cannot be touched
  std::byte* arena = nullptr;  // the caller's memory, arena_size + Arena::kSlack bytes
};

class Session {
 public:
  // Loads an open file. Throws ProgramError or SystemError.
  Session(int descriptor, const SessionOptions& options);
  // Runs a file that sessions share. Throws ProgramError or SystemError.
  Session(std::shared_ptr<const MappedFile> file, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const program::Program& program() const { return file_->program(); }
  const MappedFile& file() const { return *file_; }
  const Arena& arena() const { return arena_; }
  const TensorView& tensor(std::size_t index) const { return tensors_[index]; }
  const TensorView& port_tensor(const program::Port& port) const {
    return tensors_[static_cast<std::size_t>(port.tensor())];
  }
  std::size_t num_tensors() const { return tensors_.size(); }
  std::size_t num_steps() const { return steps_.size(); }

  // Copies an input of the caller into the arena: contiguous, its axes as the caller has them.
  void feed(std::size_t input, const std::byte* data);
  // Copies an output to the caller in the same form.
  void fetch(std::size_t output, std::byte* data) const;
  // Runs steps [first, last), none of them external. Allocates nothing.
  void run(std::size_t first, std::size_t last);
  // Lets the tensors that are kept between runs start anew.
  void reset();

  // What runs a step; null for one of another runtime.
  const Step* step(std::size_t index) const { return steps_[index].get(); }

  void set_profiling(bool wanted);
  // Of the last run while profiling, by step.
  const std::vector<std::int64_t>& nanoseconds() const { return nanoseconds_; }
  void note_nanoseconds(std::size_t step, std::int64_t value) { nanoseconds_[step] = value; }

 private:
  struct Threads;
  // A constant as it is without its code.
  struct DecodedTensor {
    std::vector<float> elements;
    std::unique_ptr<TensorView> view;
  };

  void bind();
  void make_steps();
  // Returns the constants of a step that are coded, decoded, and lets the operands be those.
  std::vector<DecodedTensor> decode_constants(Operands& operands);
  // Of the caller's array, the source, and of the tensor; as stored, outermost first.
  std::vector<StridedCopy::Axis> axes(const program::Port& port) const;
  void make_port_copies();
  void poison_before(std::size_t step);
  void poison_after(std::size_t step);

  std::shared_ptr<const MappedFile> file_;
  std::vector<TensorView> tensors_;
  Symbols symbols_;
  std::vector<DecodedTensor> decoded_;  // that steps read
  Arena arena_;
  bool poisons_;
  std::unique_ptr<Threads> threads_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<StridedCopy> feeds_;                    // by input
  std::vector<StridedCopy> fetches_;                  // by output
  std::vector<std::vector<std::uint32_t>> dying_;     // records, by the last step of their life
  std::vector<std::vector<std::uint32_t>> starting_;  // records, by their first step
  std::vector<std::int64_t> nanoseconds_;
  bool is_profiling_ = false;
};

}  // namespace arenite
