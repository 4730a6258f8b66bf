#include "constants.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "coding/coded_weights.hpp"
#include "errors.hpp"
#include "lanes.hpp"

namespace arenite {

SymbolDecoder* Constants::decoder_of(const program::Step& step) {
  return runs_beside(step) ? &decoder_beside_ : &decoder_;
}

std::vector<Constants::Decoded> Constants::decode(Operands& operands) {
  std::vector<Decoded> decoded;
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    auto& input = operands.inputs[i];
    const bool is_loaded = i == 0 && operands.step.kernel_type() == program::Operator::LoadWeights;
    if (input == nullptr || input->coded_size == 0 || is_loaded) { continue; }
    const std::string label = "step '" + operands.step.name()->str() + "'";
    const CodedWeights coded(input->data, input->coded_size, input->num_elements(), label,
                             decoder_);
    Decoded made{i, {}, std::make_unique<TensorView>(*input)};
    try {
      made.elements.resize(input->num_elements());
    } catch (const std::bad_alloc&) { throw SystemError("no memory for the weights of " + label); }
    coded.decode();
    coded.visit([&](std::size_t position, float value) { made.elements[position] = value; });
    made.view->data = reinterpret_cast<std::byte*>(made.elements.data());
    made.view->coded_size = 0;
    input = made.view.get();
    decoded.push_back(std::move(made));
  }
  return decoded;
}

void Constants::settle(const program::Step& step, const Step* made, std::vector<Decoded> decoded) {
  const auto is_packed = [&](std::size_t input) {
    return made != nullptr && made->has_packed(input);
  };
  for (auto& each : decoded) {
    if (!is_packed(each.input)) { decoded_.push_back(std::move(each)); }
  }
  if (const auto* external = step.kernel_as_External()) {
    note_resident(tensors_[static_cast<std::size_t>(external->model())]);
  }
  const std::size_t count = step.inputs() == nullptr ? 0 : step.inputs()->size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = step.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto* input = index < 0 ? nullptr : &tensors_[static_cast<std::size_t>(index)];
    if (input == nullptr || !input->is_constant) { continue; }
    const bool is_loader = step.kernel_type() == program::Operator::LoadWeights && i == 0;
    // Of a table few rows are read, and their pages given back.
    const bool is_table = step.kernel_type() == program::Operator::BlockGather;
    const bool is_read_in_runs =
        is_loader ? input->coded_size != 0 : !is_table && !is_packed(i) && input->coded_size == 0;
    if (is_read_in_runs) {
      note_resident(*input);
    } else {
      file_.release(input->data, input->coded_size != 0 ? input->coded_size : input->size);
    }
  }
}

void Constants::note_resident(const TensorView& tensor) {
  if (!tensor.is_constant) { return; }
  const std::size_t size = tensor.coded_size != 0 ? tensor.coded_size : tensor.size;
  note_range(tensor.data, tensor.data + size);
}

void Constants::note_resident_of(const Constants& other) {
  for (const auto& [begin, end] : other.resident_) { note_range(begin, end); }
}

void Constants::note_range(const std::byte* begin, const std::byte* end) {
  auto next = resident_.upper_bound(begin);
  if (next != resident_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != resident_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = resident_.erase(next);
  }
  resident_.emplace(begin, end);
}

void Constants::release_decoder() { decoder_.release(); }

std::uint64_t Constants::resident_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [begin, end] : resident_) { bytes += static_cast<std::uint64_t>(end - begin); }
  return bytes;
}

std::uint64_t Constants::decoded_bytes() const {
  std::uint64_t bytes = heap_bytes(decoded_) + decoder_.held_bytes() + decoder_beside_.held_bytes();
  for (const auto& each : decoded_) {
    bytes += heap_bytes(each.elements) + sizeof *each.view + heap_bytes(each.view->shape) +
             heap_bytes(each.view->scales);
  }
  return bytes;
}

}  // namespace arenite
