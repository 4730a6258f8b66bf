#include "weights/weight_loader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mapped_file.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// Elements of a row between two rows of a block: so many lines of the window stay in the cache.
constexpr std::size_t kStretch = 512;

}  // namespace

WeightLoader::WeightLoader(const Operands& operands)
    : may_pack_(operands.may_pack_window),
      file_(operands.file),
      weights_(*operands.inputs[0]),
      window_(*operands.outputs[0]),
      rows_(weights_.shape[0]) {
  if (const auto* bias = optional_input(operands, 1)) {
    bias_ = bias->as<float>();
  }
  if (weights_.coded_size != 0) {
    coded_.emplace(weights_.data, weights_.coded_size, weights_.num_elements(),
                   "step '" + operands.step.name()->str() + "'", *operands.decoder);
  }
}

void WeightLoader::pack(Packing packing, std::size_t size) {
  packing_ = std::move(packing);
  packed_size_ = size;
}

void WeightLoader::run() {
  if (packing_.block_rows == 0) {
    load_plain();
  } else {
    load_packed();
  }
  if (!coded_.has_value()) {
    file_->release(weights_.data, weights_.size);
  }
}

void WeightLoader::load_plain() {
  if (!coded_.has_value()) {
    std::memcpy(window_.data, weights_.data, weights_.size);
    return;
  }
  float* window = window_.as<float>();
  if (!coded_->is_plain()) {
    std::memset(window, 0, weights_.size);
  }
  coded_->decode();
  coded_->visit([window](std::size_t position, float value) { window[position] = value; });
}

void WeightLoader::load_packed() {
  const bool is_whole = !coded_.has_value() || coded_->is_plain();
  float* window = window_.as<float>();
  // Kernels read what is left over, and must find zeros there.
  const std::size_t first = is_whole && packing_.fills_all ? packing_.size : 0;
  std::memset(window + first, 0, packed_size_ - first * sizeof(float));
  if (!coded_.has_value()) {
    const float* weights = weights_.as<float>();
    fill_rows([weights](std::size_t i) { return weights[i]; });
  } else if (is_whole) {
    const std::uint8_t* indices = coded_->decode();
    fill_rows([this, indices](std::size_t i) { return coded_->value(indices[i]); });
  } else {
    coded_->decode();
    scatter();
  }
  for (std::size_t row = 0; row < packing_.biases.size(); ++row) {
    window[packing_.biases[row]] = bias_[row];
  }
}

// Calls use(place), where place(row, column) is the float in a block.
template <typename Use>
void WeightLoader::with_places(const Use& use) {
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
void WeightLoader::fill_rows(const Weight& weight) {
  with_places([&](const auto& place) {
    float* block = window_.as<float>();
    for (std::size_t first = 0; first < rows_; first += packing_.block_rows) {
      fill_block(block, first, std::min(packing_.block_rows, rows_ - first), weight, place);
      block += packing_.block_size;
    }
  });
}

template <typename Weight, typename Place>
void WeightLoader::fill_block(float* block, std::size_t first, std::size_t count, Weight weight,
                              Place place) {
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

void WeightLoader::scatter() {
  const std::size_t columns = packing_.columns;
  with_places([&](const auto& place) {
    float* block = window_.as<float>();
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

namespace {

std::unique_ptr<Step> make_weight_loader(const Operands& operands) {
  require_arity(operands, 1, 2);
  const auto& weights = *operands.inputs[0];
  const auto* bias = optional_input(operands, 1);
  const auto& window = *operands.outputs[0];
  const auto type = program::Type::float32;
  require(operands, weights.is_constant && (bias == nullptr || bias->is_constant),
          "its weights are not constant");
  require(operands,
          weights.type == type && window.type == type && (bias == nullptr || bias->type == type),
          "it loads 32-bit floats only");
  require(operands, weights.rank() > 0 && weights.size > 0, "it has no weights");
  require(operands, bias == nullptr || bias->num_elements() == weights.shape[0],
          "its bias does not fit");
  if (window.size < weights.size) {
    refuse(operands, "its window has " + std::to_string(window.size) + " B; its weights have " +
                         std::to_string(weights.size));
  }
  return std::make_unique<WeightLoader>(operands);
}

const Registration registered{program::Operator::LoadWeights, make_weight_loader};

}  // namespace

}  // namespace arenite
