// Elements or slices of a tensor, updated by index.
#include <array>
#include <cstring>

#include "kernels/wrapping.hpp"
#include "of_type.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

// Where updates go. An update has `num_axes` indices, of axes whose lengths and strides stand here,
// and changes `length` elements that lie together.
struct Places {
  std::size_t updates = 1;
  std::size_t length = 1;
  std::size_t num_axes = 1;
  std::array<std::int64_t, kMaxRank> lengths{};
  std::array<std::size_t, kMaxRank> strides{};  // in elements of the data
};

// Elements: an update also lies where its index stands along the other axes.
struct Elsewhere {
  std::size_t rank = 0;
  std::array<std::size_t, kMaxRank> shape{};    // of the indices
  std::array<std::size_t, kMaxRank> strides{};  // in elements of the data; 0 for the axis
};

struct Replace {
  template <typename T>
  static T of(T /*old*/, T update) {
    return update;
  }
};
struct Add {
  template <typename T>
  static T of(T old, T update) {
    return sum(old, update);
  }
};
struct Multiply {
  template <typename T>
  static T of(T old, T update) {
    return product(old, update);
  }
};
struct Minimum {
  template <typename T>
  static T of(T old, T update) {
    return update < old ? update : old;
  }
};
struct Maximum {
  template <typename T>
  static T of(T old, T update) {
    return update > old ? update : old;
  }
};

template <typename T, typename Index, typename Function>
class ScatterStep final : public Step {
 public:
  ScatterStep(const Operands& operands, const Places& places, const Elsewhere& elsewhere)
      : step_(operands.step),
        data_(operands.inputs[0]->data),
        indices_(operands.inputs[1]->as<Index>()),
        updates_(operands.inputs[2]->as<T>()),
        target_(operands.outputs[0]->as<T>()),
        size_(operands.outputs[0]->size),
        places_(places),
        elsewhere_(elsewhere) {}

  void check() const override {
    for (std::size_t i = 0; i < places_.updates * places_.num_axes; ++i) {
      const std::int64_t length = places_.lengths[i % places_.num_axes];
      require_index(step_, indices_[i], -length, length);
    }
  }

  void run() override {
    auto* target = reinterpret_cast<std::byte*>(target_);
    if (target != data_) { std::memcpy(target, data_, size_); }
    std::array<std::size_t, kMaxRank> at{};  // of the index, along the axes of the indices
    std::size_t beside = 0;
    for (std::size_t i = 0; i < places_.updates; ++i) {
      update(i, beside);
      for (std::size_t axis = elsewhere_.rank; axis-- > 0;) {
        beside += elsewhere_.strides[axis];
        if (++at[axis] < elsewhere_.shape[axis]) { break; }
        beside -= elsewhere_.strides[axis] * elsewhere_.shape[axis];
        at[axis] = 0;
      }
    }
  }

 private:
  void update(std::size_t number, std::size_t place) const {
    const Index* indices = indices_ + number * places_.num_axes;
    for (std::size_t i = 0; i < places_.num_axes; ++i) {
      const std::int64_t index = indices[i];
      const std::int64_t positive = index < 0 ? index + places_.lengths[i] : index;
      // A run cannot fail: indices out of range are ignored.
      if (positive < 0 || positive >= places_.lengths[i]) { return; }
      place += static_cast<std::size_t>(positive) * places_.strides[i];
    }
    const T* from = updates_ + number * places_.length;
    T* to = target_ + place;
    for (std::size_t j = 0; j < places_.length; ++j) { to[j] = Function::of(to[j], from[j]); }
  }

  const program::Step& step_;
  const std::byte* data_;
  const Index* indices_;
  const T* updates_;
  T* target_;
  std::size_t size_;
  Places places_;
  Elsewhere elsewhere_;
};

// Calls make with a value of a type of this size, as elements are moved; null for other sizes.
template <typename Make>
std::unique_ptr<Step> of_element_size(program::Type type, const Make& make) {
  switch (element_size(type)) {
    case 1: return make(std::uint8_t{});
    case 2: return make(std::uint16_t{});
    case 4: return make(std::uint32_t{});
    case 8: return make(std::uint64_t{});
    default: return nullptr;
  }
}

std::unique_ptr<Step> step_of(const Operands& operands, program::ScatterFunction function,
                              const Places& places, const Elsewhere& elsewhere) {
  using program::ScatterFunction;
  const program::Type type = operands.inputs[0]->type;
  const auto make = [&](auto number, auto updating) {
    return of_index_type(operands.inputs[1]->type, [&](auto index) -> std::unique_ptr<Step> {
      return std::make_unique<ScatterStep<decltype(number), decltype(index), decltype(updating)>>(
          operands, places, elsewhere);
    });
  };
  const auto of_numbers = [&](auto updating) {
    return of_number_type(type, [&](auto number) { return make(number, updating); });
  };
  switch (function) {
    case ScatterFunction::replace:
      return of_element_size(type, [&](auto bits) { return make(bits, Replace{}); });
    case ScatterFunction::add: return of_numbers(Add{});
    case ScatterFunction::multiply: return of_numbers(Multiply{});
    case ScatterFunction::minimum: return of_numbers(Minimum{});
    case ScatterFunction::maximum: return of_numbers(Maximum{});
  }
  return nullptr;
}

// Checks what both operators need, and returns the distances between elements along each axis.
std::array<std::size_t, kMaxRank> strides_of_data(const Operands& operands) {
  require_arity(operands, 3, 3);
  const auto& data = *operands.inputs[0];
  const auto& target = *operands.outputs[0];
  require(operands, data.type == target.type && data.type == operands.inputs[2]->type,
          "its data, updates and output differ in type");
  require(operands, data.shape == target.shape, "its data and output differ in shape");
  std::array<std::size_t, kMaxRank> strides{};
  std::size_t stride = 1;
  for (std::size_t i = data.rank(); i-- > 0;) {
    require(operands, data.shape[i] < (1u << 31), "an axis has too many elements");
    strides[i] = stride;
    stride *= data.shape[i];
  }
  return strides;
}

std::unique_ptr<Step> make_scatter_elements(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_ScatterElements();
  const auto strides = strides_of_data(operands);
  const auto& data = *operands.inputs[0];
  const auto& indices = *operands.inputs[1];
  const std::size_t axis = attributes.axis();
  require(operands, axis < data.rank(), "the axis is out of range");
  require(operands, indices.rank() == data.rank(), "its indices have another rank than its data");
  require(operands, indices.shape == operands.inputs[2]->shape,
          "it does not have one update for each index");
  Places places;
  Elsewhere elsewhere;
  places.updates = indices.num_elements();
  places.lengths[0] = static_cast<std::int64_t>(data.shape[axis]);
  places.strides[0] = strides[axis];
  elsewhere.rank = data.rank();
  for (std::size_t i = 0; i < data.rank(); ++i) {
    require(operands, i == axis || indices.shape[i] <= data.shape[i],
            "its indices reach beyond its data");
    elsewhere.shape[i] = indices.shape[i];
    elsewhere.strides[i] = i == axis ? 0 : strides[i];
  }
  return step_of(operands, attributes.function(), places, elsewhere);
}

std::unique_ptr<Step> make_scatter_slices(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_ScatterSlices();
  const auto strides = strides_of_data(operands);
  const auto& data = *operands.inputs[0];
  const auto& indices = *operands.inputs[1];
  const std::size_t num_axes = indices.rank() == 0 ? 0 : indices.shape.back();
  require(operands, num_axes > 0 && num_axes <= data.rank(),
          "its indices do not have one for each axis");
  Places places;
  places.num_axes = num_axes;
  places.updates = indices.num_elements() / num_axes;
  for (std::size_t i = 0; i < data.rank(); ++i) {
    if (i < num_axes) {
      places.lengths[i] = static_cast<std::int64_t>(data.shape[i]);
      places.strides[i] = strides[i];
    } else {
      places.length *= data.shape[i];
    }
  }
  const std::size_t updates = operands.inputs[2]->num_elements();
  require(operands,
          places.length == 0
              ? updates == 0
              : updates % places.length == 0 && updates / places.length == places.updates,
          "it does not have one slice for each index");
  return step_of(operands, attributes.function(), places, Elsewhere{});
}

const Registration registered[] = {
    {program::Operator::ScatterElements, make_scatter_elements},
    {program::Operator::ScatterSlices, make_scatter_slices},
};

}  // namespace

}  // namespace arenite
