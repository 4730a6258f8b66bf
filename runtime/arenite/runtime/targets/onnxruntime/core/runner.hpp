// One call from Python for a whole run of a session.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arenite {

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

struct ValueType {
  std::string name;
  int element_type;  // as ONNX Runtime numbers them
};

// The functions of ONNX Runtime's C API that a run takes, by their place in its table.
struct RunApi {
  using Status = void*;

  explicit RunApi(void* const* table);
  // Throws what the status says.
  void check(Status status) const;

  const char* (*get_error_message)(Status);
  Status (*run)(void* session, const void* options, const char* const* input_names,
                const void* const* inputs, std::size_t num_inputs, const char* const* output_names,
                std::size_t num_outputs, void** outputs);
  Status (*create_tensor)(const void* memory, void* data, std::size_t num_bytes,
                          const std::int64_t* shape, std::size_t rank, int element_type,
                          void** value);
  Status (*get_data)(void* value, void** data);
  Status (*get_rank)(const void* info, std::size_t* rank);
  Status (*get_shape)(const void* info, std::int64_t* shape, std::size_t rank);
  Status (*get_info)(const void* value, void** info);
  void (*release_status)(Status);
  void (*release_value)(void* value);
  void (*release_info)(void* info);
};

class Runner {
 public:
  Runner(std::uintptr_t table, std::uintptr_t session, std::uintptr_t memory,
         std::vector<ValueType> inputs, std::vector<ValueType> outputs);

  // Returns all outputs. Those that are given an array are written there; of the others, those
  // that the session made in this arena are views of it, and the rest copies.
  nb::list run(const std::vector<Array>& inputs,
               const std::vector<std::optional<nb::object>>& bound,
               const std::optional<nb::object>& arena) const;

 private:
  void* wrapped(const Array& array, int element_type) const;
  nb::object taken(void* value, int element_type, const std::optional<nb::object>& arena) const;

  RunApi api_;
  void* session_;
  const void* memory_;
  std::vector<ValueType> inputs_;
  std::vector<ValueType> outputs_;
  std::vector<const char*> input_names_;
  std::vector<const char*> output_names_;
};

}  // namespace arenite
