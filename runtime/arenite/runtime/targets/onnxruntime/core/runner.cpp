#include "runner.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

namespace arenite {

namespace {

template <typename Function>
void take(void* const* table, std::size_t index, Function& function) {
  function = reinterpret_cast<Function>(table[index]);
}

// Values that are given back when they go out of scope.
class Values {
 public:
  Values(const RunApi& api, std::size_t count) : api_(api), values_(count, nullptr) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() {
    for (void* value : values_) {
      if (value != nullptr) api_.release_value(value);
    }
  }

  void*& operator[](std::size_t index) { return values_[index]; }
  void** data() { return values_.data(); }

 private:
  const RunApi& api_;
  std::vector<void*> values_;
};

nb::dlpack::dtype dlpack_type(int element_type) {
  using Code = nb::dlpack::dtype_code;
  const auto type = [](Code code, std::uint8_t bits) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1};
  };
  switch (element_type) {
    case 1: return type(Code::Float, 32);
    case 2: return type(Code::UInt, 8);
    case 3: return type(Code::Int, 8);
    case 4: return type(Code::UInt, 16);
    case 5: return type(Code::Int, 16);
    case 6: return type(Code::Int, 32);
    case 7: return type(Code::Int, 64);
    case 9: return type(Code::Bool, 8);
    case 10: return type(Code::Float, 16);
    case 11: return type(Code::Float, 64);
    case 12: return type(Code::UInt, 32);
    case 13: return type(Code::UInt, 64);
    default: throw std::invalid_argument("numpy has no such element type");
  }
}

bool is_inside(const void* data, std::size_t num_bytes, const Array& arena) {
  const auto begin = reinterpret_cast<std::uintptr_t>(arena.data());
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  return num_bytes != 0 && begin <= first && num_bytes <= arena.nbytes() &&
         first - begin <= arena.nbytes() - num_bytes;
}

std::vector<const char*> pointers(const std::vector<ValueType>& values) {
  std::vector<const char*> result;
  for (const ValueType& value : values) result.push_back(value.name.c_str());
  return result;
}

}  // namespace

RunApi::RunApi(void* const* table) {
  take(table, 2, get_error_message);
  take(table, 9, run);
  take(table, 49, create_tensor);
  take(table, 51, get_data);
  take(table, 61, get_rank);
  take(table, 62, get_shape);
  take(table, 65, get_info);
  take(table, 93, release_status);
  take(table, 96, release_value);
  take(table, 99, release_info);
}

void RunApi::check(Status status) const {
  if (status == nullptr) return;
  const std::string message = get_error_message(status);
  release_status(status);
  throw std::runtime_error(message);
}

Runner::Runner(std::uintptr_t table, std::uintptr_t session, std::uintptr_t memory,
               std::vector<ValueType> inputs, std::vector<ValueType> outputs)
    : api_(reinterpret_cast<void* const*>(table)),
      session_(reinterpret_cast<void*>(session)),
      memory_(reinterpret_cast<const void*>(memory)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      input_names_(pointers(inputs_)),
      output_names_(pointers(outputs_)) {}

nb::list Runner::run(const std::vector<Array>& inputs,
                     const std::vector<std::optional<nb::object>>& bound,
                     const std::optional<nb::object>& arena) const {
  if (inputs.size() != inputs_.size() || bound.size() != outputs_.size()) {
    throw std::invalid_argument("one array for each input and output is needed");
  }
  Values given(api_, inputs.size());
  Values made(api_, bound.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    given[i] = wrapped(inputs[i], inputs_[i].element_type);
  }
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (bound[i]) made[i] = wrapped(nb::cast<Array>(*bound[i]), outputs_[i].element_type);
  }
  {
    nb::gil_scoped_release unlocked;
    api_.check(api_.run(session_, nullptr, input_names_.data(), given.data(), inputs.size(),
                        output_names_.data(), bound.size(), made.data()));
  }
  nb::list result;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    result.append(bound[i] ? *bound[i] : taken(made[i], outputs_[i].element_type, arena));
  }
  return result;
}

void* Runner::wrapped(const Array& array, int element_type) const {
  static std::byte nothing;  // where an array without elements begins
  void* data = const_cast<void*>(array.data());
  std::vector<std::int64_t> shape(array.ndim());
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    shape[axis] = static_cast<std::int64_t>(array.shape(axis));
  }
  void* value = nullptr;
  api_.check(api_.create_tensor(memory_, data != nullptr ? data : &nothing, array.nbytes(),
                                shape.data(), shape.size(), element_type, &value));
  return value;
}

nb::object Runner::taken(void* value, int element_type,
                         const std::optional<nb::object>& arena) const {
  void* raw_info = nullptr;
  api_.check(api_.get_info(value, &raw_info));
  const std::unique_ptr<void, void (*)(void*)> info(raw_info, api_.release_info);
  std::size_t rank = 0;
  api_.check(api_.get_rank(info.get(), &rank));
  std::vector<std::int64_t> sizes(rank);
  api_.check(api_.get_shape(info.get(), sizes.data(), rank));
  const nb::dlpack::dtype dtype = dlpack_type(element_type);
  std::size_t num_bytes = dtype.bits / 8;
  std::vector<std::size_t> shape;
  for (const std::int64_t size : sizes) {
    shape.push_back(static_cast<std::size_t>(size));
    num_bytes *= shape.back();
  }
  void* source = nullptr;
  api_.check(api_.get_data(value, &source));
  if (arena && is_inside(source, num_bytes, nb::cast<Array>(*arena))) {
    return nb::cast(nb::ndarray<nb::numpy>(source, rank, shape.data(), *arena, nullptr, dtype));
  }
  auto memory = std::make_unique<std::byte[]>(num_bytes);
  if (num_bytes != 0) std::memcpy(memory.get(), source, num_bytes);
  std::byte* const data = memory.get();
  const nb::capsule owner(memory.release(),
                          [](void* each) noexcept { delete[] static_cast<std::byte*>(each); });
  return nb::cast(nb::ndarray<nb::numpy>(data, rank, shape.data(), owner, nullptr, dtype));
}

}  // namespace arenite
