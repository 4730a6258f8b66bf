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
  // A decoded constant.
  struct Decoded {
    std::size_t input;  // of its step
    std::vector<float> elements;
    std::unique_ptr<TensorView> view;
  };

  // Both must outlive this object; tensors must not move once steps exist.
  Constants(const MappedFile& file, const std::vector<TensorView>& tensors)
      : file_(file), tensors_(tensors) {}

  // Returns the decoder of a step's weights. Each decoder is used by one thread.
  SymbolDecoder* decoder_of(const program::Step& step);
  // Decodes the coded constants of a step and makes them its operands.
  std::vector<Decoded> decode(Operands& operands);
  // Releases the constants that a step has packed, and keeps those that it still reads. `made` is
  // null for a step of another runtime.
  void settle(const program::Step& step, const Step* made, std::vector<Decoded> decoded);
  // Notes that runs read a tensor from the file, if it is a constant.
  void note_resident(const TensorView& tensor);
  // Notes what runs of another program of this file read.
  void note_resident_of(const Constants& other);
  // Frees the decoder of the computing steps if none of them decodes during a run.
  void release_decoder();

  // Bytes of the file that runs read.
  std::uint64_t resident_bytes() const;
  // Bytes of decoded constants and of the decoders.
  std::uint64_t decoded_bytes() const;

 private:
  void note_range(const std::byte* begin, const std::byte* end);

  const MappedFile& file_;
  const std::vector<TensorView>& tensors_;
  SymbolDecoder decoder_;
  SymbolDecoder decoder_beside_;                           // of the steps of the lane
  std::vector<Decoded> decoded_;                           // that steps read
  std::map<const std::byte*, const std::byte*> resident_;  // ends by begins; disjoint
};

}  // namespace arenite
