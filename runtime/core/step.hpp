// One step of a run, ready: operands checked, kernels chosen, addresses bound.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program_generated.h"
#include "tensor_view.hpp"

struct pthreadpool;

namespace arenite {

class MappedFile;
class SymbolDecoder;

// What a step is made from; null where an optional operand is left out.
struct Operands {
  const program::Step& step;
  std::vector<const TensorView*> inputs;
  std::vector<const TensorView*> outputs;
  const TensorView* scratch;  // working memory of the step; null if it has none
  pthreadpool* threads;       // null: the calling thread alone
  SymbolDecoder* decoder;     // of coded weights
  const MappedFile* file;     // where constants lie
};

class Step {
 public:
  virtual ~Step() = default;
  // Allocates nothing and cannot fail: whatever can go wrong is refused when it is made.
  virtual void run() = 0;
  // "xnnpack" or "arenite".
  virtual const char* backend() const = 0;
  // Whether this input, a constant, was copied when the step was made, so that the original is
  // not read again.
  virtual bool has_packed(std::size_t /*input*/) const { return false; }
  // Whether it decodes weights in each run.
  virtual bool decodes() const { return false; }
};

// Each makes the step of one operator of the schema, or throws ProgramError (errors.hpp) that
// says which operand of which step does not fit. Operands lie inside their place, and agree
// with their shapes and types in size; nothing else is known of them.
using MakeStep = std::unique_ptr<Step> (*)(const Operands&);

}  // namespace arenite
