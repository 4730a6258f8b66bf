// Selects the element type that a step is compiled for.
#pragma once

#include <cstdint>
#include <memory>

#include "step.hpp"

namespace arenite {

// Calls make with a value of an index type, int32 or int64; null for other types.
template <typename Make>
std::unique_ptr<Step> of_index_type(program::Type type, const Make& make) {
  switch (type) {
    case program::Type::int32: return make(std::int32_t{});
    case program::Type::int64: return make(std::int64_t{});
    default: return nullptr;
  }
}

// The same with the types of numbers.
template <typename Make>
std::unique_ptr<Step> of_number_type(program::Type type, const Make& make) {
  switch (type) {
    case program::Type::float32: return make(float{});
    case program::Type::int8: return make(std::int8_t{});
    case program::Type::uint8: return make(std::uint8_t{});
    default: return of_index_type(type, make);
  }
}

}  // namespace arenite
