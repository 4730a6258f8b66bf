// The step that brings weights into a window of a memory, for a later step that reads them there.
#pragma once

#include <memory>
#include <optional>

#include "coding/coded_weights.hpp"
#include "step.hpp"
#include "weights/packing.hpp"

namespace arenite {

// Decodes the weights, or copies them from the file. The window then holds them as they are, row
// after row; or in the order of the kernels that read them, with the bias, if these say so.
class WeightLoader final : public Step {
 public:
  explicit WeightLoader(const Operands& operands);

  // Whether nobody reads the window but one step, as its filter, and that step has the bias that
  // this one has.
  bool may_pack() const { return may_pack_; }
  // Whether it decodes in each run.
  bool decodes() const { return coded_.has_value(); }
  const TensorView& window() const { return window_; }
  // From now on the window holds `size` bytes in that order.
  void pack(Packing packing, std::size_t size);

  void run() override;
  const char* backend() const override { return "arenite"; }

 private:
  void load_plain();
  void load_packed();
  template <typename Use>
  void with_places(const Use& use);
  template <typename Weight>
  void fill_rows(const Weight& weight);
  template <typename Weight, typename Place>
  void fill_block(float* block, std::size_t first, std::size_t count, Weight weight, Place place);
  void scatter();

  bool may_pack_;
  const MappedFile* file_;
  TensorView weights_;
  TensorView window_;
  const float* bias_ = nullptr;
  std::size_t rows_;
  std::optional<CodedWeights> coded_;
  Packing packing_;  // no rows: as they are
  std::size_t packed_size_ = 0;
};

}  // namespace arenite
