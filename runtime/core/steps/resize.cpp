// Rows and columns of an image, taken or blended by tables.
#include <algorithm>
#include <type_traits>

#include "kernels/parallel.hpp"
#include "kernels/quantised.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

using program::Type;

// Where the elements of one axis come from, as the program has it.
struct Table {
  const std::uint32_t* low;
  const std::uint32_t* high;  // null with `weight`: the nearest is copied
  const float* weight;
  std::size_t count;
};

using Indices = flatbuffers::Vector<std::uint32_t>;

Table table(const Operands& operands, const Indices* low, const Indices* high,
            const flatbuffers::Vector<float>* weight, std::size_t length, std::size_t count) {
  require(operands, low != nullptr && low->size() == count, "a table is not as long as the output");
  const bool interpolates = weight != nullptr && weight->size() > 0;
  require(operands,
          !interpolates || (weight->size() == count && high != nullptr && high->size() == count),
          "a table is not as long as the output");
  for (const auto* indices : {low, interpolates ? high : nullptr}) {
    for (flatbuffers::uoffset_t i = 0; indices != nullptr && i < count; ++i) {
      require(operands, indices->Get(i) < length, "a table leads outside the input");
    }
  }
  return {low->data(), interpolates ? high->data() : nullptr,
          interpolates ? weight->data() : nullptr, count};
}

template <typename T>
class ResizeStep final : public Step {
 public:
  ResizeStep(const Operands& operands, const Table& rows, const Table& columns)
      : source_(operands.inputs[0]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        height_(operands.inputs[0]->shape[1]),
        width_(operands.inputs[0]->shape[2]),
        channels_(operands.inputs[0]->shape[3]),
        num_images_(operands.inputs[0]->shape[0]),
        rows_(rows),
        columns_(columns),
        is_empty_(operands.outputs[0]->size == 0),
        in_(Scale::of(*operands.inputs[0])),
        out_(Scale::of(*operands.outputs[0])),
        threads_(operands.threads) {}

  void run() override {
    if (is_empty_) {
      return;
    }
    const std::size_t new_width = columns_.count;
    const bool interpolates = rows_.weight != nullptr;
    parallel(threads_, num_images_ * rows_.count, 8 * sizeof(T) * new_width * channels_,
             [this, interpolates](std::size_t first, std::size_t count) {
               for (std::size_t i = first; i < first + count; ++i) {
                 interpolates ? interpolate_row(i) : copy_row(i);
               }
             });
  }

  const char* backend() const override { return "arenite"; }

 private:
  const T* input_row(std::size_t image, std::size_t row) const {
    return source_ + (image * height_ + row) * width_ * channels_;
  }

  void copy_row(std::size_t index) const {
    const std::size_t row = index % rows_.count;
    const T* source = input_row(index / rows_.count, rows_.low[row]);
    T* target = target_ + index * columns_.count * channels_;
    for (std::size_t column = 0; column < columns_.count; ++column) {
      const T* from = source + columns_.low[column] * channels_;
      std::copy(from, from + channels_, target);
      target += channels_;
    }
  }

  void interpolate_row(std::size_t index) const {
    const std::size_t row = index % rows_.count;
    const std::size_t image = index / rows_.count;
    const T* above = input_row(image, rows_.low[row]);
    const T* below = input_row(image, rows_.high[row]);
    const float down = rows_.weight[row];
    T* target = target_ + index * columns_.count * channels_;
    for (std::size_t column = 0; column < columns_.count; ++column) {
      const std::size_t left = columns_.low[column] * channels_;
      const std::size_t right = columns_.high[column] * channels_;
      const float along = columns_.weight[column];
      for (std::size_t c = 0; c < channels_; ++c) {
        const float top = interpolate(above[left + c], above[right + c], along);
        const float bottom = interpolate(below[left + c], below[right + c], along);
        target[c] = to_element(top + down * (bottom - top));
      }
      target += channels_;
    }
  }

  static float interpolate(T a, T b, float weight) {
    const auto low = static_cast<float>(a);
    return low + weight * (static_cast<float>(b) - low);
  }

  T to_element(float value) const {
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return out_.quantise<T>(in_.scale * (value - static_cast<float>(in_.zero_point)));
    }
  }

  const T* source_;
  T* target_;
  std::size_t height_;
  std::size_t width_;
  std::size_t channels_;
  std::size_t num_images_;
  Table rows_;
  Table columns_;
  bool is_empty_;
  Scale in_;
  Scale out_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_resize(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Resize2D();
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, source.rank() == 4 && target.rank() == 4, "it must read and make images");
  require(operands, source.shape[0] == target.shape[0] && source.shape[3] == target.shape[3],
          "batches or channels differ");
  require(operands, source.type == target.type, "input and output differ in type");
  const Table rows = table(operands, attributes.row_low(), attributes.row_high(),
                           attributes.row_weight(), source.shape[1], target.shape[1]);
  const Table columns = table(operands, attributes.column_low(), attributes.column_high(),
                              attributes.column_weight(), source.shape[2], target.shape[2]);
  require(operands, (rows.weight == nullptr) == (columns.weight == nullptr),
          "it interpolates along one axis alone");
  switch (source.type) {
    case Type::float32:
      return std::make_unique<ResizeStep<float>>(operands, rows, columns);
    case Type::int8:
      return std::make_unique<ResizeStep<std::int8_t>>(operands, rows, columns);
    case Type::uint8:
      return std::make_unique<ResizeStep<std::uint8_t>>(operands, rows, columns);
    default:
      return nullptr;
  }
}

const Registration registered{program::Operator::Resize2D, make_resize};

}  // namespace

}  // namespace arenite
