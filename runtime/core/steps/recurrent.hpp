// Helpers of recurrent layers: sizes, the places of time steps, and the sums of gates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/gates.hpp"
#include "operand_checks.hpp"

namespace arenite {

// Sizes of a layer that reads x, weights and recurrent weights.
struct RecurrentSizes {
  std::size_t times;
  std::size_t batch;
  std::size_t inputs;
  std::size_t units;
  std::size_t directions;
  bool is_batch_major;

  // First element of x at a time, and of y for a direction; then from one sequence to the next.
  std::size_t source(std::size_t time) const {
    return time * inputs * (is_batch_major ? 1 : batch);
  }
  std::size_t source_stride() const { return inputs * (is_batch_major ? times : 1); }
  std::size_t target(std::size_t time, std::size_t direction) const {
    return is_batch_major ? (time * directions + direction) * units
                          : (time * directions + direction) * batch * units;
  }
  std::size_t target_stride() const { return units * (is_batch_major ? times * directions : 1); }
  std::size_t state() const { return batch * units; }
};

inline void require_elements(const Operands& operands, const TensorView* view, program::Type type,
                             std::size_t count) {
  require(operands, view != nullptr && view->type == type,
          type == program::Type::float32 ? "all operands must be present and float32"
                                         : "an operand is missing or has an unsupported type");
  require(operands, view->num_elements() == count, "an operand has the wrong size");
}

inline void require_numbers(const Operands& operands, const TensorView* view, std::size_t count) {
  require_elements(operands, view, program::Type::float32, count);
}

// Requires that x, the weights and y fit each other, and are of this type. Floats are packed
// (kernels/gates.hpp): directions, tiles, inputs or units, gates * kGateUnits. Integers are
// directions, gates * units, inputs or units.
inline RecurrentSizes recurrent_sizes(const Operands& operands, std::size_t gates,
                                      bool is_batch_major,
                                      program::Type type = program::Type::float32) {
  const bool is_packed = type == program::Type::float32;
  const auto& x = *operands.inputs[0];
  const auto& weights = *operands.inputs[1];
  const auto& recurrent = *operands.inputs[2];
  const std::size_t rank = is_packed ? 4 : 3;
  require(operands, x.rank() == 3 && weights.rank() == rank && recurrent.rank() == rank,
          "its input or weights have another rank");
  RecurrentSizes sizes{x.shape[is_batch_major ? 1 : 0],
                       x.shape[is_batch_major ? 0 : 1],
                       x.shape[2],
                       recurrent.shape[2],
                       weights.shape[0],
                       is_batch_major};
  require(operands, sizes.directions == 1 || sizes.directions == 2,
          "only one or two directions are supported");
  const std::size_t rows = is_packed ? gate_tiles(sizes.units) : gates * sizes.units;
  const auto fit = [&](const TensorView& view, std::size_t depth) {
    return view.shape[0] == sizes.directions && view.shape[1] == rows && view.shape[2] == depth &&
           (!is_packed || view.shape[3] == gates * kGateUnits);
  };
  require(operands, fit(weights, sizes.inputs) && fit(recurrent, sizes.units),
          "its weights do not fit");
  require(operands, operands.outputs[0]->size > 0, "its output is empty");
  require_elements(operands, &x, type, sizes.times * sizes.batch * sizes.inputs);
  require_elements(operands, &weights, type, weights.num_elements());
  require_elements(operands, &recurrent, type, recurrent.num_elements());
  require_elements(operands, operands.outputs[0], type,
                   sizes.times * sizes.directions * sizes.state());
  return sizes;
}

// Begins the states of all directions: as given, or with zeros.
inline void begin_states(const RecurrentSizes& sizes, const TensorView* initial, float* states) {
  const std::size_t count = sizes.directions * sizes.state();
  if (initial == nullptr) {
    std::fill_n(states, count, 0.0f);
  } else {
    std::copy_n(initial->as<float>(), count, states);
  }
}

// How long each sequence is; all have all times unless an operand states it.
class SequenceLengths {
 public:
  SequenceLengths(const Operands& operands, std::size_t position, const RecurrentSizes& sizes)
      : sizes_(sizes) {
    const TensorView* stated = optional_input(operands, position);
    if (stated == nullptr) { return; }
    require_elements(operands, stated, program::Type::int32, sizes.batch);
    lengths_ = stated->as<std::int32_t>();
  }

  void check(const program::Step& step) const {
    for (std::size_t b = 0; lengths_ != nullptr && b < sizes_.batch; ++b) {
      require_index(step, lengths_[b], 0, static_cast<std::int64_t>(sizes_.times) + 1);
    }
  }

  // A run cannot fail: a length beyond all times is as if it were these, one below 0 as if it were
  // 0.
  bool reaches(std::size_t time, std::size_t sequence) const {
    return lengths_ == nullptr || static_cast<std::int64_t>(time) < lengths_[sequence];
  }

  // The times that some sequence has.
  std::size_t longest() const {
    if (lengths_ == nullptr) { return sizes_.times; }
    const std::int64_t most = *std::max_element(lengths_, lengths_ + sizes_.batch);
    return std::min(static_cast<std::size_t>(std::max<std::int64_t>(most, 0)), sizes_.times);
  }

  // Makes y zero at the times of a direction that no sequence has.
  void clear_rest(std::size_t direction, float* target) const {
    for (std::size_t time = longest(); time < sizes_.times; ++time) {
      for (std::size_t b = 0; b < sizes_.batch; ++b) {
        std::fill_n(target + sizes_.target(time, direction) + b * sizes_.target_stride(),
                    sizes_.units, 0.0f);
      }
    }
  }

  // Ends a time: what was made of each sequence becomes its state or, beyond its length, zeros.
  void keep_states(std::size_t time, float* target, float* states) const {
    for (std::size_t b = 0; b < sizes_.batch; ++b) {
      float* made = target + b * sizes_.target_stride();
      if (reaches(time, b)) {
        std::copy_n(made, sizes_.units, states + b * sizes_.units);
      } else {
        std::fill_n(made, sizes_.units, 0.0f);
      }
    }
  }

 private:
  RecurrentSizes sizes_;
  const std::int32_t* lengths_ = nullptr;
};

// Vectors of inputs that are multiplied at once, and the times that these are.
constexpr std::size_t kVectorsAtOnce = 12;
inline std::size_t times_at_once(const RecurrentSizes& sizes) {
  return std::clamp<std::size_t>(kVectorsAtOnce / sizes.batch, 1, sizes.times);
}

// Calls begin(first, count) for each group of times, and then advance(time, slot) for each of them,
// in the order of the direction.
template <typename Begin, typename Advance>
void each_group_of_times(std::size_t times, std::size_t at_once, bool is_backward,
                         const Begin& begin, const Advance& advance) {
  for (std::size_t begun = 0; begun < times; begun += at_once) {
    const std::size_t count = std::min(at_once, times - begun);
    const std::size_t first = is_backward ? times - begun - count : begun;
    begin(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t slot = is_backward ? count - 1 - i : i;
      advance(first + slot, slot);
    }
  }
}

// Sums of gates in working memory. Products with the inputs are made for several times at once, so
// that their weights are read once for these; or for one time and a few tiles.
class GateSums {
 public:
  // Tiles of one time whose products with the inputs are made at once.
  static constexpr std::size_t kTilesAtOnce = 2;

  GateSums(const Operands& operands, const RecurrentSizes& sizes, std::size_t num_gates,
           bool needs_all_tiles)
      : sizes_(sizes),
        num_gates_(num_gates),
        num_tiles_(gate_tiles(sizes.units)),
        source_(operands.inputs[0]->as<float>()),
        weights_(operands.inputs[1]->as<float>()),
        recurrent_(operands.inputs[2]->as<float>()),
        bias_(operands.inputs[3]->as<float>()) {
    const bool follow = !sizes.is_batch_major || sizes.batch == 1;  // one time after another
    times_ = follow ? times_at_once(sizes) : 1;
    tiles_ = times_ > 1 || needs_all_tiles ? num_tiles_ : std::min(num_tiles_, kTilesAtOnce);
    require_numbers(operands, operands.inputs[3], sizes.directions * num_tiles_ * tile_size());
  }

  // Floats of working memory, and where they lie.
  std::size_t elements() const { return times_ * sizes_.batch * vector_size(); }
  void place(float* sums) { sums_ = sums; }

  std::size_t tiles_at_once() const { return tiles_; }
  std::size_t tile_size() const { return num_gates_ * kGateUnits; }
  std::size_t vector_size() const { return tiles_ * tile_size(); }

  // Calls advance(time, sums) for so many times, in their order, with the sums of all tiles from
  // the inputs, or null.
  template <typename Advance>
  void each_time(std::size_t times, std::size_t direction, bool is_backward,
                 const Advance& advance) const {
    each_group_of_times(
        times, times_, is_backward,
        [&](std::size_t first, std::size_t count) {
          if (tiles_ == num_tiles_) { multiply_inputs(first, count, direction, 0, num_tiles_); }
        },
        [&](std::size_t time, std::size_t slot) {
          advance(time, sums_ + slot * sizes_.batch * vector_size());
        });
  }

  // Tiles whose sums are in working memory at once.
  struct Tiles {
    std::size_t first;
    std::size_t count;
    std::size_t unit;  // the first, and how many they have
    std::size_t units;
    float* sums;
  };

  // Calls make(tiles) for all tiles of a time.
  template <typename Make>
  void each_tiles(std::size_t time, std::size_t direction, float* sums, const Make& make) const {
    for (std::size_t first = 0; first < num_tiles_; first += tiles_) {
      const std::size_t count = std::min(tiles_, num_tiles_ - first);
      if (tiles_ < num_tiles_) { multiply_inputs(time, 1, direction, first, count); }
      const std::size_t unit = first * kGateUnits;
      make(Tiles{first, count, unit, std::min(sizes_.units - unit, count * kGateUnits), sums});
    }
  }

  // Adds the products of states with the recurrent weights to the sums of `gates` gates.
  void multiply_state(const float* states, std::size_t gates, std::size_t direction,
                      const Tiles& tiles) const {
    const std::size_t tile = direction * num_tiles_ + tiles.first;
    multiply_gates({num_gates_, gates, states, sizes_.units, sizes_.batch, sizes_.units,
                    recurrent_ + tile * sizes_.units * tile_size(), tiles.count, tiles.sums,
                    vector_size()});
  }

 private:
  void multiply_inputs(std::size_t time, std::size_t num_times, std::size_t direction,
                       std::size_t tile, std::size_t num_tiles) const {
    const std::size_t begun = direction * num_tiles_ + tile;
    const std::size_t count = num_times * sizes_.batch;
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(bias_ + begun * tile_size(), num_tiles * tile_size(), sums_ + i * vector_size());
    }
    const std::size_t stride = num_times > 1 ? sizes_.inputs : sizes_.source_stride();
    multiply_gates({num_gates_, num_gates_, source_ + sizes_.source(time), stride, count,
                    sizes_.inputs, weights_ + begun * sizes_.inputs * tile_size(), num_tiles, sums_,
                    vector_size()});
  }

  RecurrentSizes sizes_;
  std::size_t num_gates_;
  std::size_t num_tiles_;
  std::size_t times_;  // of which working memory holds sums
  std::size_t tiles_;  // of which it holds sums
  const float* source_;
  const float* weights_;
  const float* recurrent_;
  const float* bias_;
  float* sums_ = nullptr;
};

// Calls advance(time, direction, sums) for the times that some sequence has, of each direction and
// in its order; the second one is backward. y is zero at the others.
template <typename Advance>
void each_time_and_direction(const RecurrentSizes& sizes, const GateSums& sums,
                             const SequenceLengths& lengths, bool is_reverse, float* target,
                             const Advance& advance) {
  for (std::size_t d = 0; d < sizes.directions; ++d) {
    lengths.clear_rest(d, target);
    sums.each_time(lengths.longest(), d, is_reverse || d == 1,
                   [&](std::size_t time, float* made) { advance(time, d, made); });
  }
}

}  // namespace arenite
