// One step of a run: operands checked, kernel chosen, addresses bound.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/image.hpp"
#include "program_generated.h"
#include "step_memory.hpp"
#include "tensor_view.hpp"

struct pthreadpool;

namespace arenite {

class MappedFile;
class ProgramSession;
class SymbolDecoder;

// Whether a program states tuned kernels, and if so, whether for this processor.
enum class Tuning { none, elsewhere, here };

// The operands of a step; null for an absent optional one.
struct Operands {
  const program::Step& step;
  StepVector<const TensorView*> inputs;
  StepVector<const TensorView*> outputs;
  const TensorView* scratch;               // working memory of the step; null if it has none
  bool in_bands;                           // some turn of it makes a few rows
  pthreadpool* threads;                    // null: the calling thread alone
  SymbolDecoder* decoder;                  // of coded weights
  const MappedFile* file;                  // where constants lie
  Tuning tuning;                           // of the program
  const std::vector<TensorView>* tensors;  // of the program, which the step names by index
  bool is_sized = false;                   // a shape or number of it depends on the sizes of a run
  KeptTables* kept = nullptr;              // null: nothing is kept for another step
  // Of a While: its condition and its body, in its working memory. They outlive the step.
  std::array<ProgramSession*, 2> inner = {};
};

// Heap bytes of a vector, including those of vectors in it and of elements that state theirs.
template <typename T, typename Allocator>
std::size_t heap_bytes(const std::vector<T, Allocator>& values) {
  return values.capacity() * sizeof(T);
}
template <typename T, typename Inner, typename Outer>
std::size_t heap_bytes(const std::vector<std::vector<T, Inner>, Outer>& values) {
  std::size_t bytes = values.capacity() * sizeof(values[0]);
  for (const auto& each : values) { bytes += heap_bytes(each); }
  return bytes;
}
template <typename T, typename Allocator>
std::size_t held_bytes_of(const std::vector<T, Allocator>& values) {
  std::size_t bytes = heap_bytes(values);
  for (const auto& each : values) { bytes += each.held_bytes(); }
  return bytes;
}

// Returns a table that the step computes from its constants alone; `fits` tells whether one that
// was kept for other sizes is that of these.
template <typename T, typename Fits, typename Make>
std::shared_ptr<const T> kept_table(const Operands& operands, const Fits& fits, const Make& make) {
  if (operands.kept != nullptr) { return operands.kept->find<T>(fits, make); }
  return std::make_shared<const T>(make());
}

class Step : public InStepMemory {
 public:
  virtual ~Step() = default;
  // Allocates nothing and cannot fail: operands were checked when the step was made.
  virtual void run() = 0;
  // Throws IndexError for an index beyond its axis, which `run` takes as if it were inside. Called
  // before each run of a session that is guarded.
  virtual void check() const {}
  // The same for some rows of its results, before a turn that makes them alone.
  virtual void check_rows(RowRange /*rows*/) const { check(); }
  // How many rows of its result the last run made, of a step that counts them; at most as many as
  // the result has.
  virtual std::size_t count() const { return 0; }
  // Whether it can make some rows of its results, wherever they lie. Such a step overrides
  // run_rows.
  virtual bool makes_rows() const { return false; }
  // Whether rows of this input may lie anywhere.
  virtual bool finds_rows(std::size_t /*input*/) const { return false; }
  // Makes rows of its results, bit for bit those of `run`. For a step that adds rows of its first
  // input to sums (rows_read.hpp), the rows are those of the input: it clears the sums at row 0,
  // keeps them in its working memory, and writes its result after the last row.
  //
  // Like `run` it allocates nothing and cannot fail. Called only if `makes_rows` is true.
  virtual void run_rows(RowRange /*rows*/) {}
  // The same for rows that are added to sums, where there may be fewer rows than turns count: the
  // result is written at the last turn, with which its bytes are live, whether that has rows or
  // not.
  virtual void sum_rows(RowRange /*rows*/, bool /*is_last*/) {}
  // Where it keeps the address of this input, if it reads the input only there and only once: that
  // of another array may take its place. Otherwise null.
  virtual const std::byte** place_of(std::size_t /*input*/) { return nullptr; }
  // Whether the step has its own copy of this constant input and does not read the original
  // again.
  virtual bool has_packed(std::size_t /*input*/) const { return false; }
  // Heap bytes of packed weights and tables, the step itself left out.
  virtual std::size_t held_bytes() const { return 0; }
  // Whether it decodes weights in each run.
  virtual bool decodes() const { return false; }
};

// Returns the step whose `run` calls a function: one that makes its results as a whole and holds
// nothing on the heap.
template <typename Run>
std::unique_ptr<Step> make_plain_step(Run run) {
  class PlainStep final : public Step {
   public:
    explicit PlainStep(Run run) : run_(std::move(run)) {}
    void run() override { run_(); }

   private:
    Run run_;
  };
  return std::make_unique<PlainStep>(std::move(run));
}

// Makes the step of one operator, or throws ProgramError (errors.hpp) for operands that do not
// fit. Operands are known to lie inside their memory and to have the size of their shape and type;
// everything else remains to be checked.
using MakeStep = std::unique_ptr<Step> (*)(const Operands&);

}  // namespace arenite
