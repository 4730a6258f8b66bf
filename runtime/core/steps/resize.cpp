// Resizes images by tables of rows and columns.
#include <algorithm>
#include <type_traits>

#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "kernels/quantised.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/images.hpp"

namespace arenite {

namespace {

using program::Type;

// The sources of the elements of one axis, as the program states them.
struct Table {
  const std::uint32_t* low;
  const std::uint32_t* high;  // null with `weight`: the nearest is copied
  const float* weight;
  std::size_t count;
  std::size_t last;  // of the source: a table for larger images may lead beyond it

  std::size_t high_of(std::size_t index) const { return std::min<std::size_t>(high[index], last); }
};

// Elements of a row that are blended at once, along the columns and then along the rows.
constexpr std::size_t kChunk = 2048;

#if defined(__x86_64__) && defined(__GNUC__)
// Without fused multiply-adds, which would round differently.
#define ARENITE_FOR_UNFUSED_AVX2 __attribute__((flatten, target("avx2")))
#else
#define ARENITE_FOR_UNFUSED_AVX2
#endif

using Indices = flatbuffers::Vector<std::uint32_t>;

Table table(const Operands& operands, const Indices* low, const Indices* high,
            const flatbuffers::Vector<float>* weight, std::size_t length, std::size_t count) {
  // A table for the highest size has its front part in use.
  const auto fits = [&](const auto* list) {
    return list != nullptr && (operands.is_sized ? list->size() >= count : list->size() == count);
  };
  const bool interpolates = weight != nullptr && weight->size() > 0;
  require(operands, fits(low) && (!interpolates || (fits(weight) && fits(high))),
          "an index table must have one entry for each element of the output's axis");
  for (const auto* indices : {low, interpolates && !operands.is_sized ? high : nullptr}) {
    for (flatbuffers::uoffset_t i = 0; indices != nullptr && i < count; ++i) {
      require(operands, indices->Get(i) < length, "an index table points outside the input");
    }
  }
  return {low->data(), interpolates ? high->data() : nullptr,
          interpolates ? weight->data() : nullptr, count,
          length - std::min<std::size_t>(length, 1)};
}

template <typename T>
class ResizeStep final : public Step {
 public:
  ResizeStep(const Operands& operands, const Table& rows, const Table& columns)
      : source_(first_image<const T>(*operands.inputs[0])),
        target_(first_image<T>(*operands.outputs[0])),
        channels_(source_.channels),
        num_images_(operands.inputs[0]->shape[0]),
        rows_(rows),
        columns_(columns),
        is_empty_(operands.outputs[0]->size == 0),
        in_(Scale::of(*operands.inputs[0])),
        out_(Scale::of(*operands.outputs[0])),
        threads_(operands.threads) {}

  void run() override {
    if (is_empty_) { return; }
    make({0, num_images_ * rows_.count});
  }

  bool makes_rows() const override { return num_images_ == 1 && !is_empty_; }
  bool finds_rows(std::size_t /*input*/) const override { return num_images_ == 1; }
  void run_rows(RowRange rows) override { make(rows); }

 private:
  // Rows are counted through all images; those of several images follow one another.
  void make(RowRange rows) const {
    parallel(threads_, rows.count, 8 * sizeof(T) * columns_.count * channels_,
             [this, rows](std::size_t first, std::size_t count) {
               first += rows.first;
               if (rows_.weight != nullptr) {
                 vectors() == Vectors::any ? interpolate(first, count)
                                           : interpolate_for_avx2(first, count);
                 return;
               }
               for (std::size_t i = first; i < first + count; ++i) { copy_row(i); }
             });
  }

  const T* input_row(std::size_t image, std::size_t row) const {
    return source_.row(image * source_.rows + row);
  }

  void copy_row(std::size_t index) const {
    const std::size_t row = index % rows_.count;
    const T* source = input_row(index / rows_.count, rows_.low[row]);
    T* target = target_.row(index);
    for (std::size_t column = 0; column < columns_.count; ++column) {
      const T* from = source + columns_.low[column] * channels_;
      std::copy(from, from + channels_, target);
      target += channels_;
    }
  }

  // Some channels of the columns of a chunk.
  struct Chunk {
    std::size_t column;
    std::size_t columns;
    std::size_t channel;
    std::size_t channels;
  };

  // Rows of the output, chunk by chunk: what lies between two columns is the same for all rows
  // between two of the input, and stays in `blended`.
  ARENITE_INLINE void interpolate_rows(std::size_t first, std::size_t count) const {
    alignas(64) float blended[2][kChunk];
    for (std::size_t channel = 0; channel < channels_; channel += kChunk) {
      const std::size_t width = std::min(kChunk, channels_ - channel);
      const std::size_t most = width == channels_ ? kChunk / width : 1;
      for (std::size_t column = 0; column < columns_.count; column += most) {
        const Chunk chunk{column, std::min(most, columns_.count - column), channel, width};
        const T* held[2] = {nullptr, nullptr};
        for (std::size_t i = first; i < first + count; ++i) {
          const std::size_t row = i % rows_.count;
          const T* above = input_row(i / rows_.count, rows_.low[row]);
          const T* below = input_row(i / rows_.count, rows_.high_of(row));
          const std::size_t top = held[1] == above && held[0] != above ? 1 : 0;
          blend_columns(chunk, above, held[top], blended[top]);
          const std::size_t bottom = below == above ? top : 1 - top;
          blend_columns(chunk, below, held[bottom], blended[bottom]);
          T* target = target_.row(i) + column * channels_ + channel;
          blend_rows(blended[top], blended[bottom], rows_.weight[row], chunk.columns * width,
                     target);
        }
      }
    }
  }

  void interpolate(std::size_t first, std::size_t count) const { interpolate_rows(first, count); }

  ARENITE_FOR_UNFUSED_AVX2 void interpolate_for_avx2(std::size_t first, std::size_t count) const {
    interpolate_rows(first, count);
  }

  ARENITE_INLINE void blend_columns(const Chunk& chunk, const T* row, const T*& held,
                                    float* __restrict to) const {
    if (held == row) { return; }
    held = row;
    for (std::size_t column = chunk.column; column < chunk.column + chunk.columns; ++column) {
      const T* __restrict left = row + columns_.low[column] * channels_ + chunk.channel;
      const T* __restrict right = row + columns_.high_of(column) * channels_ + chunk.channel;
      const float along = columns_.weight[column];
      for (std::size_t c = 0; c < chunk.channels; ++c) {
        const auto low = static_cast<float>(left[c]);
        to[c] = low + along * (static_cast<float>(right[c]) - low);
      }
      to += chunk.channels;
    }
  }

  ARENITE_INLINE void blend_rows(const float* __restrict top, const float* __restrict bottom,
                                 float down, std::size_t count, T* __restrict to) const {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = to_element(top[i] + down * (bottom[i] - top[i]));
    }
  }

  ARENITE_INLINE T to_element(float value) const {
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return out_.quantise<T>(in_.scale * (value - static_cast<float>(in_.zero_point)));
    }
  }

  Image<const T> source_;
  Image<T> target_;
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
  require(operands, source.rank() == 4 && target.rank() == 4,
          "its input and output must have rank 4");
  require(operands, source.shape[0] == target.shape[0] && source.shape[3] == target.shape[3],
          "batches or channels differ");
  require(operands, source.type == target.type, "input and output differ in type");
  const Table rows = table(operands, attributes.row_low(), attributes.row_high(),
                           attributes.row_weight(), source.shape[1], target.shape[1]);
  const Table columns = table(operands, attributes.column_low(), attributes.column_high(),
                              attributes.column_weight(), source.shape[2], target.shape[2]);
  require(operands, (rows.weight == nullptr) == (columns.weight == nullptr),
          "it must interpolate along both axes or neither");
  switch (source.type) {
    case Type::float32: return std::make_unique<ResizeStep<float>>(operands, rows, columns);
    case Type::int8: return std::make_unique<ResizeStep<std::int8_t>>(operands, rows, columns);
    case Type::uint8: return std::make_unique<ResizeStep<std::uint8_t>>(operands, rows, columns);
    default: return nullptr;
  }
}

const Registration registered{program::Operator::Resize2D, make_resize};

}  // namespace

}  // namespace arenite
