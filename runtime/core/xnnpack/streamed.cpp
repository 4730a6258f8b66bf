#include "streamed.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "../mapped_file.hpp"
#include "../operand_checks.hpp"
#include "packing.hpp"

namespace arenite::xnnpack {

namespace {

// Whole numbers up to here are exact in 32-bit floating point.
constexpr std::size_t kMostWeights = std::size_t{1} << 24;
// Elements of a row between two rows of a block: so many lines of the window stay in the cache.
constexpr std::size_t kStretch = 512;

class StreamedStep final : public Step {
 public:
  StreamedStep(std::unique_ptr<Step> step, Packing packing, const Operands& operands,
               std::size_t packed_size)
      : step_(std::move(step)),
        packing_(std::move(packing)),
        file_(operands.file),
        filter_(*operands.inputs[1]),
        rows_(filter_.num_elements() / packing_.columns),
        window_(operands.outputs[1]->as<float>()),
        packed_size_(packed_size) {
    if (!packing_.biases.empty()) {
      bias_ = operands.inputs[2]->as<float>();
    }
    if (filter_.coded_size != 0) {
      coded_.emplace(filter_.data, filter_.coded_size, filter_.num_elements(),
                     "step '" + operands.step.name()->str() + "'", *operands.symbols);
    }
  }

  void run() override {
    fill();
    step_->run();
  }

  const char* backend() const override { return step_->backend(); }

 private:
  void fill() {
    const bool is_whole = !coded_.has_value() || coded_->is_plain();
    // Kernels read what is left over, and must find zeros there.
    const std::size_t first = is_whole && packing_.fills_all ? packing_.size : 0;
    std::memset(window_ + first, 0, packed_size_ - first * sizeof(float));
    if (!coded_.has_value()) {
      const float* weights = filter_.as<float>();
      fill_rows([weights](std::size_t i) { return weights[i]; });
      file_->release(filter_.data, filter_.size);
    } else if (is_whole) {
      const std::uint8_t* indices = coded_->decode();
      fill_rows([this, indices](std::size_t i) { return coded_->value(indices[i]); });
    } else {
      coded_->decode();
      scatter();
    }
    for (std::size_t row = 0; row < packing_.biases.size(); ++row) {
      window_[packing_.biases[row]] = bias_[row];
    }
  }

  // Calls use(place), where place(row, column) is the float in a block.
  template <typename Use>
  void with_places(const Use& use) {
    if (packing_.stride != 0) {
      use([first = packing_.first, stride = packing_.stride](std::size_t row, std::size_t column) {
        return first + column * stride + row;
      });
    } else {
      use([places = packing_.places.data(), columns = packing_.columns](
              std::size_t row, std::size_t column) { return places[row * columns + column]; });
    }
  }

  template <typename Weight>
  void fill_rows(const Weight& weight) {
    with_places([&](const auto& place) {
      float* block = window_;
      for (std::size_t first = 0; first < rows_; first += packing_.block_rows) {
        fill_block(block, first, std::min(packing_.block_rows, rows_ - first), weight, place);
        block += packing_.block_size;
      }
    });
  }

  template <typename Weight, typename Place>
  void fill_block(float* block, std::size_t first, std::size_t count, Weight weight, Place place) {
    const std::size_t columns = packing_.columns;
    for (std::size_t begin = 0; begin < columns; begin += kStretch) {
      const std::size_t end = std::min(begin + kStretch, columns);
      std::size_t row = 0;
      for (; row + 4 <= count; row += 4) {
        const std::size_t from = (first + row) * columns;
        for (std::size_t column = begin; column < end; ++column) {
          for (std::size_t i = 0; i < 4; ++i) {
            block[place(row + i, column)] = weight(from + i * columns + column);
          }
        }
      }
      for (; row < count; ++row) {
        for (std::size_t column = begin; column < end; ++column) {
          block[place(row, column)] = weight((first + row) * columns + column);
        }
      }
    }
  }

  void scatter() {
    const std::size_t columns = packing_.columns;
    with_places([&](const auto& place) {
      float* block = window_;
      std::size_t row = 0;
      std::size_t begin = 0;
      coded_->visit([&](std::size_t position, float value) {
        while (position - begin >= columns) {
          begin += columns;
          if (++row == packing_.block_rows) {
            row = 0;
            block += packing_.block_size;
          }
        }
        block[place(row, position - begin)] = value;
      });
    });
  }

  std::unique_ptr<Step> step_;
  Packing packing_;
  const MappedFile* file_;
  TensorView filter_;
  std::size_t rows_;
  float* window_;
  std::size_t packed_size_;
  const float* bias_ = nullptr;
  std::optional<CodedWeights> coded_;
};

}  // namespace

StreamedWeights::StreamedWeights(const Operands& operands)
    : operands_(operands), filter_(*operands.inputs[1]) {
  const auto* bias = optional_input(operands, 2);
  rows_ = filter_.rank() == 0 ? 0 : filter_.shape[0];
  const std::size_t size = filter_.num_elements();
  require(operands,
          filter_.type == program::Type::float32 && operands.outputs[1]->type == filter_.type &&
              rows_ > 0 && size > 0 && size < kMostWeights &&
              (bias == nullptr || (bias->type == filter_.type && bias->num_elements() == rows_)),
          "its weights cannot be streamed");
  columns_ = size / rows_;
  numbers_.resize(size + rows_);
  for (std::size_t i = 0; i < size; ++i) {
    numbers_[i] = static_cast<float>(i + 1);
  }
  for (std::size_t row = 0; row < rows_; ++row) {
    numbers_[size + row] = -static_cast<float>(row + 1);
  }
  filter_.data = reinterpret_cast<std::byte*>(numbers_.data());
  filter_.coded_size = 0;
  if (bias != nullptr) {
    bias_ = *bias;
    bias_->data = reinterpret_cast<std::byte*>(numbers_.data() + size);
  }
}

std::unique_ptr<Step> StreamedWeights::make(Node& node, xnn_status status) {
  const TensorView& window = *operands_.outputs[1];
  std::memset(window.data, 0, window.size);  // what is left over is not to be taken for a weight
  Capture capture(window.data, window.size, filter_.size);
  auto step = node.make(status, false);
  if (step == nullptr) {
    return nullptr;
  }
  if (capture.size() > window.size) {
    refuse(operands_, "its window has " + std::to_string(window.size) +
                          " B; the kernels of this "
                          "processor need " +
                          std::to_string(capture.size()));
  }
  Packing packing = Packing::of(window.as<float>(), capture.size() / sizeof(float), rows_, columns_,
                                bias_.has_value());
  require(operands_, packing.block_rows > 0,
          "XNNPACK packs its weights in a way that is not known; build it without a weight budget");
  return std::make_unique<StreamedStep>(std::move(step), std::move(packing), operands_,
                                        capture.size());
}

}  // namespace arenite::xnnpack
