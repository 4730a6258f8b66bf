#include "lent_inputs.hpp"

#include <algorithm>
#include <cstddef>

#include "turns.hpp"

namespace arenite {

namespace {

using Indices = flatbuffers::Vector<std::int32_t>;

bool share_bytes(const TensorView& a, const TensorView& b) {
  return a.data < b.data + b.size && b.data < a.data + a.size;
}

bool keeps_axes(const program::Port& port) {
  const auto* axes = port.permutation();
  return axes == nullptr || std::is_sorted(axes->begin(), axes->end());
}

// The input of a tensor in a program without turns, and the steps around it.
class Reading {
 public:
  Reading(const program::Program& program, const std::vector<TensorView>& tensors, int tensor)
      : program_(program), tensors_(tensors), tensor_(tensor), view_(at(tensor)) {}

  // The address of the input in its reader, the only step that reads its bytes before another step
  // has written them.
  const std::byte** place(const std::vector<std::unique_ptr<Step>>& steps,
                          std::vector<const TensorView*>& written) const {
    if (view_.is_constant || view_.rows != nullptr || view_.data == nullptr) { return nullptr; }
    const std::byte** found = nullptr;
    written.clear();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto& step = *program_.steps()->Get(static_cast<flatbuffers::uoffset_t>(i));
      bool is_reader = false;
      for (flatbuffers::uoffset_t k = 0; step.inputs() != nullptr && k < step.inputs()->size();
           ++k) {
        const int index = step.inputs()->Get(k);
        if (index < 0 || !share_bytes(at(index), view_) || is_among(at(index), written)) {
          continue;
        }
        if (index != tensor_ || found != nullptr || steps[i] == nullptr) { return nullptr; }
        found = steps[i]->place_of(k);
        if (found == nullptr) { return nullptr; }
        is_reader = true;
      }
      for (flatbuffers::uoffset_t k = 0; step.outputs() != nullptr && k < step.outputs()->size();
           ++k) {
        const int index = step.outputs()->Get(k);
        if (index < 0 || !share_bytes(at(index), view_)) { continue; }
        if (index == tensor_) { return nullptr; }  // a state
        if (is_reader) { return nullptr; }         // it may leave elements where they are
        written.push_back(&at(index));
      }
    }
    const auto* outputs = program_.outputs();
    const bool is_output = std::any_of(outputs->begin(), outputs->end(), [&](const auto* port) {
      return share_bytes(at(port->tensor()), view_) && !is_among(at(port->tensor()), written);
    });
    return is_output ? nullptr : found;
  }

 private:
  const TensorView& at(int index) const { return tensors_[static_cast<std::size_t>(index)]; }

  static bool is_among(const TensorView& view, const std::vector<const TensorView*>& written) {
    return std::any_of(written.begin(), written.end(), [&view](const TensorView* each) {
      return each->data <= view.data && view.data + view.size <= each->data + each->size;
    });
  }

  const program::Program& program_;
  const std::vector<TensorView>& tensors_;
  int tensor_;
  const TensorView& view_;
};

}  // namespace

void find_lendable_inputs(const program::Program& program, const std::vector<TensorView>& tensors,
                          const std::vector<std::unique_ptr<Step>>& steps,
                          std::vector<const TensorView*>& written,
                          std::vector<const std::byte**>& places) {
  places.clear();
  for (const auto* port : *program.inputs()) {
    const bool may_be = !has_turns(program) && keeps_axes(*port);
    places.push_back(may_be ? Reading(program, tensors, port->tensor()).place(steps, written)
                            : nullptr);
  }
}

}  // namespace arenite
