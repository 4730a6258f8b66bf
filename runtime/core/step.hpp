// One step of a run, ready: operands checked, kernels chosen, addresses bound.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/image.hpp"
#include "program_generated.h"
#include "tensor_view.hpp"

struct pthreadpool;

namespace arenite {

class MappedFile;
class SymbolDecoder;

// Whether a program states kernels that were measured, and if so, whether on this processor.
enum class Tuning { none, elsewhere, here };

// What a step is made from; null where an optional operand is left out.
struct Operands {
  const program::Step& step;
  std::vector<const TensorView*> inputs;
  std::vector<const TensorView*> outputs;
  const TensorView* scratch;  // working memory of the step; null if it has none
  bool in_bands;              // some turn of it makes a few rows
  pthreadpool* threads;       // null: the calling thread alone
  SymbolDecoder* decoder;     // of coded weights
  const MappedFile* file;     // where constants lie
  Tuning tuning;              // of the program
};

// Heap bytes of a vector, including those of vectors in it and of elements that state theirs.
template <typename T>
std::size_t heap_bytes(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}
template <typename T>
std::size_t heap_bytes(const std::vector<std::vector<T>>& values) {
  std::size_t bytes = values.capacity() * sizeof(values[0]);
  for (const auto& each : values) {
    bytes += heap_bytes(each);
  }
  return bytes;
}
template <typename T>
std::size_t held_bytes_of(const std::vector<T>& values) {
  std::size_t bytes = heap_bytes(values);
  for (const auto& each : values) {
    bytes += each.held_bytes();
  }
  return bytes;
}

class Step {
 public:
  virtual ~Step() = default;
  // Allocates nothing and cannot fail: whatever can go wrong is refused when it is made.
  virtual void run() = 0;
  // Whether it makes some rows of its results at a time, and finds them wherever they lie. Whoever
  // says so overrides run_rows.
  virtual bool makes_rows() const { return false; }
  // Whether it finds the rows of this input wherever they lie.
  virtual bool finds_rows(std::size_t /*input*/) const { return false; }
  // Makes rows of its results, bit for bit those that `run` makes. A step that takes rows of its
  // first input into sums (rows_read.hpp) takes those instead: it begins anew at row 0, keeps its
  // sums in its working memory, and writes its result when it has taken the last row.
  //
  // Like `run` it allocates nothing and cannot fail. Called only where `makes_rows`.
  virtual void run_rows(RowRange /*rows*/) {}
  // "xnnpack" or "arenite".
  virtual const char* backend() const = 0;
  // Whether this input, a constant, was copied when the step was made, so that the original is
  // not read again.
  virtual bool has_packed(std::size_t /*input*/) const { return false; }
  // Heap bytes of packed weights and tables, the step itself left out.
  virtual std::size_t held_bytes() const { return 0; }
  // Whether it decodes weights in each run.
  virtual bool decodes() const { return false; }
};

// Each makes the step of one operator of the schema, or throws ProgramError (errors.hpp) that
// says which operand of which step does not fit. Operands lie inside their place, and agree
// with their shapes and types in size; nothing else is known of them.
using MakeStep = std::unique_ptr<Step> (*)(const Operands&);

}  // namespace arenite
