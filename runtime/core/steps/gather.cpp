// Slices of a tensor, by index.
#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/half.hpp"
#include "kernels/parallel.hpp"
#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/by_rows.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

struct Extent {
  std::size_t batch = 1;     // axes that data and indices share
  std::size_t outer = 1;     // of the data, before the axes that are indexed
  std::size_t length = 1;    // of those axes together
  std::size_t elements = 1;  // of a slice behind them
  std::size_t count = 1;     // places of a batch
  std::size_t num_axes = 1;  // that are indexed, and indices of a place
  std::array<std::int64_t, kMaxRank> lengths{};
};

template <typename Index>
class GatherStep final : public Step {
 public:
  GatherStep(const Operands& operands, const Extent& extent)
      : step_(operands.step),
        data_(operands.inputs[0]->data),
        indices_(operands.inputs[1]->as<Index>()),
        target_(operands.outputs[0]->data),
        rows_(operands, extent),
        extent_(extent),
        type_(operands.inputs[0]->type),
        widens_(type_ != operands.outputs[0]->type),
        bytes_(extent.elements * element_size(type_)),
        copied_(extent.elements * element_size(operands.outputs[0]->type)),
        num_slices_(operands.outputs[0]->size == 0
                        ? 0
                        : operands.outputs[0]->num_elements() / extent.elements),
        threads_(operands.threads) {}

  void check() const override {
    if (rows_.lie_apart) { return check_rows({0, rows_.indices.rows}); }
    check(indices_, extent_.batch * extent_.count * extent_.num_axes);
  }
  void check_rows(RowRange rows) const override {
    for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
      check(rows_.indices.row(row), rows_.indices.channels);
    }
  }

  bool makes_rows() const override { return rows_.are_there; }
  bool finds_rows(std::size_t input) const override { return input == 1 && rows_.are_there; }
  void run_rows(RowRange rows) override {
    const std::size_t slices = rows_.indices.channels;
    parallel(threads_, rows.count, slices * bytes_, [&](std::size_t first, std::size_t n) {
      for (std::size_t row = rows.first + first; row < rows.first + first + n; ++row) {
        const Index* indices = rows_.indices.row(row);
        std::byte* to = rows_.target.row(row);
        for (std::size_t i = 0; i < slices; ++i, to += copied_) {
          copy(data_ + inside(indices[i], extent_.lengths[0]) * bytes_, to);
        }
      }
    });
  }

  void run() override {
    if (rows_.lie_apart) { return run_rows({0, rows_.indices.rows}); }
    parallel(threads_, num_slices_, bytes_, [this](std::size_t first, std::size_t n) {
      for (std::size_t i = first; i < first + n; ++i) {
        const std::size_t row = i / extent_.count;
        const std::size_t place = i % extent_.count;
        const std::size_t at = row / extent_.outer * extent_.count + place;
        copy(data_ + (row * extent_.length + slice_at(at)) * bytes_, target_ + i * copied_);
      }
    });
  }

 private:
  // Rows of the result that are those of rows of the indices: slices of the first axis.
  struct Rows {
    Rows(const Operands& operands, const Extent& extent) : lie_apart(arenite::lie_apart(operands)) {
      const auto& given = *operands.inputs[1];
      const auto& result = *operands.outputs[0];
      are_there = extent.batch == 1 && extent.outer == 1 && extent.num_axes == 1 &&
                  is_one_image(result) && given.rank() > 1 && given.shape[0] == 1 &&
                  given.shape[1] == result.shape[1] && operands.inputs[0]->rows == nullptr;
      if (are_there) {
        const std::size_t each = given.num_elements() / given.shape[1];
        indices = {given.as<Index>(), given.shape[1], 1, each, each, each, given.rows};
        const std::size_t bytes = result.size / result.shape[1];
        target = {result.data, result.shape[1], 1, bytes, bytes, bytes, result.rows};
      }
    }

    bool lie_apart;
    bool are_there;
    Image<const Index> indices{};
    Image<std::byte> target{};
  };

  void check(const Index* indices, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t length = extent_.lengths[i % extent_.num_axes];
      require_index(step_, indices[i], -length, length);
    }
  }

  void copy(const std::byte* from, std::byte* to) const {
    if (!widens_) {
      std::memcpy(to, from, bytes_);
      return;
    }
    auto* const floats = reinterpret_cast<float*>(to);
    if (type_ == program::Type::float16) {
      widen(reinterpret_cast<const Half*>(from), floats, extent_.elements);
    } else {
      widen(reinterpret_cast<const BFloat*>(from), floats, extent_.elements);
    }
  }

  std::size_t slice_at(std::size_t place) const {
    const Index* indices = indices_ + place * extent_.num_axes;
    std::size_t slice = inside(indices[0], extent_.lengths[0]);
    for (std::size_t i = 1; i < extent_.num_axes; ++i) {
      slice = slice * static_cast<std::size_t>(extent_.lengths[i]) +
              inside(indices[i], extent_.lengths[i]);
    }
    return slice;
  }

  // Negative indices count from the end. A run cannot fail: indices out of range are clamped.
  static std::size_t inside(std::int64_t index, std::int64_t length) {
    const std::int64_t positive = index < 0 ? index + length : index;
    return static_cast<std::size_t>(std::min(std::max(positive, std::int64_t{0}), length - 1));
  }

  const program::Step& step_;
  const std::byte* data_;
  const Index* indices_;
  std::byte* target_;
  Rows rows_;
  Extent extent_;
  program::Type type_;
  bool widens_;         // 16-bit floats to those of 32 bits
  std::size_t bytes_;   // of a slice of the data
  std::size_t copied_;  // of a slice of the result
  std::size_t num_slices_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_gather(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Gather();
  require_arity(operands, 2, 2);
  const auto& data = *operands.inputs[0];
  const auto& indices = *operands.inputs[1];
  const auto& target = *operands.outputs[0];
  const std::size_t axis = attributes.axis();
  const std::size_t batch_axes = attributes.batch_axes();
  const std::size_t num_axes = attributes.num_axes();
  require(operands,
          axis < data.rank() && num_axes > 0 && num_axes <= data.rank() - axis &&
              batch_axes <= axis && batch_axes <= indices.rank(),
          "the axis is out of range");
  Extent extent;
  extent.num_axes = num_axes;
  for (std::size_t i = 0; i < data.rank(); ++i) {
    (i < batch_axes        ? extent.batch
     : i < axis            ? extent.outer
     : i - axis < num_axes ? extent.length
                           : extent.elements) *= data.shape[i];
    if (i >= axis && i - axis < num_axes) {
      extent.lengths[i - axis] = static_cast<std::int64_t>(data.shape[i]);
    }
    require(operands, i >= batch_axes || indices.shape[i] == data.shape[i],
            "data and indices differ in a batch");
  }
  for (std::size_t i = batch_axes; i < indices.rank(); ++i) { extent.count *= indices.shape[i]; }
  if (num_axes > 1) {
    require(operands, indices.rank() > batch_axes && indices.shape.back() == num_axes,
            "its indices do not have one for each axis");
    extent.count = indices.num_elements() / num_axes / std::max<std::size_t>(extent.batch, 1);
  }
  const bool widens = is_short_float(data.type) && target.type == program::Type::float32;
  require(operands, data.type == target.type || widens, "input and output differ in type");
  require(operands, extent.length > 0 || target.size == 0, "the axis has no elements");
  require(operands, extent.length < (1u << 31), "the axis has too many elements");
  require(operands,
          target.num_elements() == extent.batch * extent.outer * extent.count * extent.elements,
          "the output does not have one slice for each index");
  return of_index_type(indices.type, [&](auto index) -> std::unique_ptr<Step> {
    return std::make_unique<GatherStep<decltype(index)>>(operands, extent);
  });
}

const Registration registered{program::Operator::Gather, make_gather};

}  // namespace

}  // namespace arenite
