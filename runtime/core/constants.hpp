// The constants of a program: decoded where they are coded, given back to the system where no run
// reads them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "coding/symbol_decoder.hpp"
#include "mapped_file.hpp"
#include "step.hpp"
#include "tensor_view.hpp"

namespace arenite {

class Constants {
 public:
  // A constant without its code.
  struct Decoded {
    std::size_t input;  // of its step
    std::vector<float> elements;
    std::unique_ptr<TensorView> view;
  };

  // Both outlive it; tensors lie where they are when steps are made.
  Constants(const MappedFile& file, const std::vector<TensorView>& tensors)
      : file_(file), tensors_(tensors) {}

  // What decodes the weights of a step, in its runs too. Decoders are used by one thread each.
  SymbolDecoder* decoder_of(const program::Step& step);
  // Returns the constants of a step that are coded, decoded, and lets the operands be those.
  std::vector<Decoded> decode(Operands& operands);
  // Sees to what a step that was made no longer reads, and to what it still does. Null stands for
  // a step of another runtime.
  void settle(const program::Step& step, const Step* made, std::vector<Decoded> decoded);
  // Counts a tensor, if it is a constant, among those that runs read from the file.
  void note_resident(const TensorView& tensor);
  // Gives back what decodes for the steps of the computation, if none decodes in its runs.
  void release_decoder();

  // Bytes of the file that runs read.
  std::uint64_t resident_bytes() const;
  // Bytes of constants without their code, and of what decodes.
  std::uint64_t decoded_bytes() const;

 private:
  const MappedFile& file_;
  const std::vector<TensorView>& tensors_;
  SymbolDecoder decoder_;
  SymbolDecoder decoder_beside_;                           // of the steps of the lane
  std::vector<Decoded> decoded_;                           // that steps read
  std::map<const std::byte*, const std::byte*> resident_;  // ends by begins; disjoint
};

}  // namespace arenite
