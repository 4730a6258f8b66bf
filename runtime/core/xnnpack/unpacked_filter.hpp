// A packed filter, unpacked for XNNPACK, which packs it in its own way.
#pragma once

#include <vector>

#include "../tensor_view.hpp"

namespace arenite::xnnpack {

class UnpackedFilter {
 public:
  // Of a packed filter, in so many groups, whose panels hold `outputs` in all.
  UnpackedFilter(const TensorView& packed, std::size_t groups, std::size_t outputs);
  UnpackedFilter(const UnpackedFilter&) = delete;
  UnpackedFilter& operator=(const UnpackedFilter&) = delete;

  const TensorView& view() const { return view_; }

 private:
  std::vector<float> elements_;
  TensorView view_;
};

}  // namespace arenite::xnnpack
