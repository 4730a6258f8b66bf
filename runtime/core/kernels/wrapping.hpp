// Integer arithmetic that wraps around.
#pragma once

#include <type_traits>

namespace arenite {

template <typename T, typename Function>
T wrapped(T a, T b, Function function) {
  if constexpr (std::is_integral_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<T>(function(static_cast<Bits>(a), static_cast<Bits>(b)));
  } else {
    return function(a, b);
  }
}

template <typename T>
T sum(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x + y; });
}

template <typename T>
T difference(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x - y; });
}

template <typename T>
T product(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x * y; });
}

template <typename T>
T magnitude(T x) {
  return x < 0 ? difference(T{0}, x) : x;
}

}  // namespace arenite
