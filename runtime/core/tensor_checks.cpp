#include "tensor_checks.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "checking.hpp"
#include "mapped_file.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

using program::Place;
using program::Program;
using program::Type;

// Product of the shape and the size of an element, or a refusal.
std::size_t checked_size(const program::Tensor& tensor) {
  std::uint64_t bytes = element_size(tensor.type());
  for (std::size_t axis = 0; axis < count(tensor.shape()); ++axis) {
    const std::uint64_t length = tensor.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis));
    if (length > kMaxBytes || (length != 0 && bytes > kMaxBytes / length)) {
      refuse("tensor " + quoted(tensor.name()) + " is too large");
    }
    bytes *= length;
  }
  return static_cast<std::size_t>(bytes);
}

// Bytes that a tensor must lie inside.
std::uint64_t checked_limit(const Program& program, const program::Tensor& tensor,
                            const std::string& label) {
  if (tensor.place() == Place::weights) {
    // Kernels read past the end of what they are given.
    return program.weights_size() -
           std::min<std::uint64_t>(program.weights_size(), MappedFile::kSlack);
  }
  if (tensor.memory() >= program.memories()->size()) {
    refuse(label + " lies in memory " + std::to_string(tensor.memory()) + " of " +
           std::to_string(program.memories()->size()));
  }
  return program.memories()->Get(tensor.memory())->size();
}

// Refuses rows that are not all there, or lie outside the memory.
void check_rows(const program::Tensor& tensor, const TensorView& view, std::uint64_t limit,
                const std::string& label) {
  const auto& rows = *tensor.rows();
  if (view.is_constant) { refuse(label + " is a constant that lies row by row"); }
  if (tensor.offset() != 0) { refuse(label + " has both rows and an offset"); }
  if (view.rank() < 2 || view.shape[0] != 1 || view.shape[1] != rows.size()) {
    refuse(label + " has offsets of " + std::to_string(rows.size()) +
           " rows, its shape has another number");
  }
  const std::uint64_t size = view.size / rows.size();
  for (flatbuffers::uoffset_t row = 0; row < rows.size(); ++row) {
    const std::uint64_t offset = rows.Get(row);
    const std::string which = label + ", row " + std::to_string(row) + ",";
    if (offset > limit || size > limit - offset) {
      refuse(which + " lies at bytes " + std::to_string(offset) + " on, outside the " +
             std::to_string(limit) + " B of its place");
    }
    if (offset % element_size(tensor.type()) != 0) {
      refuse(which + " lies at byte " + std::to_string(offset) + ", between two of its elements");
    }
  }
}

}  // namespace

TensorView checked_tensor(const Program& program, const program::Tensor& tensor) {
  const std::string label = "tensor " + quoted(tensor.name());
  if (tensor.type() > Type::MAX || tensor.place() > Place::MAX) {
    refuse(label + " has an unknown type or place");
  }
  if (count(tensor.shape()) > kMaxRank) {
    refuse(label + " has " + std::to_string(count(tensor.shape())) + " axes; at most " +
           std::to_string(kMaxRank) + " can be run");
  }
  TensorView view;
  view.type = tensor.type();
  view.size = checked_size(tensor);
  view.is_constant = tensor.place() == Place::weights;
  if (tensor.coded_size() != 0 && (!view.is_constant || view.type != Type::float32)) {
    refuse(label + " is coded, and no constant of 32-bit floats");
  }
  for (std::size_t axis = 0; axis < count(tensor.shape()); ++axis) {
    const auto length = tensor.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis));
    view.shape.push_back(static_cast<std::size_t>(length));
  }
  view.has_one_row = view.rank() > 1 && view.shape[1] == 1;
  const std::uint64_t limit = checked_limit(program, tensor, label);
  if (count(tensor.rows()) > 0) {
    check_rows(tensor, view, limit, label);
    view.rows = tensor.rows()->data();
  }
  const std::uint64_t size = tensor.coded_size() != 0 ? tensor.coded_size()
                             : view.rows != nullptr   ? 0
                                                      : view.size;
  view.is_spilled = !view.is_constant && program.memories()->Get(tensor.memory())->spilled();
  view.offset = tensor.offset();
  if (tensor.offset() > limit || size > limit - tensor.offset()) {
    refuse(label + " lies at bytes " + std::to_string(tensor.offset()) + " to " +
           std::to_string(tensor.offset() + size) + ", outside the " + std::to_string(limit) +
           " B of its place");
  }
  if (tensor.offset() % element_size(tensor.type()) != 0) {
    refuse(label + " lies at byte " + std::to_string(tensor.offset()) +
           ", between two of its elements");
  }
  view.coded_size = static_cast<std::size_t>(tensor.coded_size());
  if (tensor.scales() != nullptr && tensor.scales()->size() > 0) {
    const auto& scales = *tensor.scales();
    const bool by_channel = scales.size() > 1;
    if (by_channel &&
        (tensor.axis() >= view.rank() || view.shape[tensor.axis()] != scales.size())) {
      refuse(label + " has " + std::to_string(scales.size()) + " scales, not one for each index");
    }
    for (const float scale : scales) {
      if (!(std::isfinite(scale) && scale > 0)) {
        refuse(label + " has a scale that is not above 0");
      }
    }
    view.scales.assign(scales.begin(), scales.end());
    const bool is_signed = view.type == Type::int8;
    const std::int32_t lowest = is_signed ? -128 : view.type == Type::uint8 ? 0 : -32768;
    const std::int32_t highest = is_signed ? 127 : view.type == Type::uint8 ? 255 : 32767;
    if (tensor.zero_point() < lowest || tensor.zero_point() > highest) {
      refuse(label + " has a zero point that none of its elements can be");
    }
    view.zero_point = tensor.zero_point();
    view.axis = tensor.axis();
  }
  return view;
}

}  // namespace arenite
