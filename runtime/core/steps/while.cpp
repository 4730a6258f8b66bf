// A loop that carries values through one program for as long as another makes true.
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "checking.hpp"
#include "interruption.hpp"
#include "operand_checks.hpp"
#include "program_session.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

using Ports = flatbuffers::Vector<flatbuffers::Offset<program::Port>>;

// Whether ports are those of the carried values, in their order.
bool are_carried(const ProgramSession& inner, const Ports& ports,
                 const StepVector<const TensorView*>& carried) {
  if (ports.size() != carried.size()) { return false; }
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const auto& port = *ports.Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto& view = *carried[i];
    bool is_alike =
        inner.port_tensor(port).type == view.type && count(port.shape()) == view.shape.size();
    for (std::size_t axis = 0; is_alike && axis < view.shape.size(); ++axis) {
      is_alike = port.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis)) == view.shape[axis];
    }
    if (!is_alike) { return false; }
  }
  return true;
}

bool makes_one_boolean(const ProgramSession& inner) {
  const auto& ports = *inner.program().outputs();
  if (ports.size() != 1) { return false; }
  const auto& view = inner.port_tensor(*ports.Get(0));
  return view.type == program::Type::boolean && view.size == 1;
}

class WhileStep final : public Step {
 public:
  WhileStep(const Operands& operands)
      : condition_(*operands.inner[0]),
        body_(*operands.inner[1]),
        given_(operands.inputs.begin(), operands.inputs.end()),
        carried_(operands.outputs.begin(), operands.outputs.end()) {}

  // May throw what `Interruption` does, and IndexError in a session that is guarded.
  void run() override {
    for (std::size_t i = 0; i < carried_.size(); ++i) {
      if (carried_[i]->size != 0) {
        std::memmove(carried_[i]->data, given_[i]->data, carried_[i]->size);
      }
    }
    Interruption interruption;
    while (holds()) {
      enter(body_);
      for (std::size_t i = 0; i < carried_.size(); ++i) { body_.fetch(i, carried_[i]->data); }
      interruption.poll();
    }
  }

  std::size_t held_bytes() const override { return heap_bytes(given_) + heap_bytes(carried_); }

 private:
  // Runs a program on the carried values.
  void enter(ProgramSession& inner) const {
    for (std::size_t i = 0; i < carried_.size(); ++i) { inner.feed(i, carried_[i]->data); }
    inner.run(0, inner.num_turns());
  }

  bool holds() const {
    enter(condition_);
    std::byte verdict{};
    condition_.fetch(0, &verdict);
    return verdict != std::byte{};
  }

  ProgramSession& condition_;
  ProgramSession& body_;
  std::vector<const TensorView*> given_;
  std::vector<const TensorView*> carried_;
};

std::unique_ptr<Step> make_while(const Operands& operands) {
  const auto& inputs = operands.inputs;
  const auto& outputs = operands.outputs;
  require(operands, inputs.size() == outputs.size() && !outputs.empty(),
          "it has no outputs, or not as many as inputs");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    require(operands, inputs[i] != nullptr, "a required input is missing");
    require(operands, inputs[i]->type == outputs[i]->type && inputs[i]->shape == outputs[i]->shape,
            "an output has another type or shape than its input");
  }
  const auto& condition = *operands.inner[0];
  const auto& body = *operands.inner[1];
  require(operands, are_carried(condition, *condition.program().inputs(), outputs),
          "the inputs of its condition are not the carried values");
  require(operands, makes_one_boolean(condition), "its condition does not make one boolean");
  require(operands, are_carried(body, *body.program().inputs(), outputs),
          "the inputs of its body are not the carried values");
  require(operands, are_carried(body, *body.program().outputs(), outputs),
          "the outputs of its body are not the carried values");
  return std::make_unique<WhileStep>(operands);
}

const Registration registered{program::Operator::While, make_while};

}  // namespace

}  // namespace arenite
