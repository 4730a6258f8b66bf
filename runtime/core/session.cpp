#include "session.hpp"

#include <pthreadpool.h>

#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "coding/coded_weights.hpp"
#include "errors.hpp"
#include "registry.hpp"
#include "validation.hpp"

namespace arenite {

struct Session::Threads {
  explicit Threads(int count) : pool(count > 1 ? pthreadpool_create(count) : nullptr) {}
  ~Threads() {
    if (pool != nullptr) {
      pthreadpool_destroy(pool);
    }
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  pthreadpool_t pool;
};

Session::Session(int descriptor, const SessionOptions& options)
    : Session(std::make_shared<const MappedFile>(descriptor), options) {}

Session::Session(std::shared_ptr<const MappedFile> file, const SessionOptions& options)
    : file_(std::move(file)),
      tensors_(validated_tensors(program())),
      arena_(static_cast<std::size_t>(program().arena_size()), options.guard, options.arena),
      poisons_(options.poison),
      threads_(std::make_unique<Threads>(options.threads)) {
  bind();
  make_steps();
  make_port_copies();
  nanoseconds_.resize(steps_.size());
  reset();
}

Session::~Session() = default;

void Session::bind() {
  const auto& tensors = *program().tensors();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto& tensor = *tensors.Get(static_cast<flatbuffers::uoffset_t>(i));
    // Constants are mapped read-only; no step writes one.
    std::byte* base =
        tensors_[i].is_constant ? const_cast<std::byte*>(file_->weights()) : arena_.data();
    tensors_[i].data = base + static_cast<std::size_t>(tensor.offset());
  }
}

void Session::make_steps() {
  const auto& steps = *program().steps();
  steps_.reserve(steps.size());
  for (const auto* step : steps) {
    if (step->kernel_type() == program::Operator::External) {
      steps_.push_back(nullptr);
      continue;
    }
    const auto find = [this](std::int32_t index) {
      return index < 0 ? nullptr : &tensors_[static_cast<std::size_t>(index)];
    };
    Operands operands{*step, {}, {}, find(step->scratch()), threads_->pool, &symbols_, file_.get()};
    if (step->inputs() != nullptr) {
      for (const auto index : *step->inputs()) {
        operands.inputs.push_back(find(index));
      }
    }
    if (step->outputs() != nullptr) {
      for (const auto index : *step->outputs()) {
        operands.outputs.push_back(find(index));
      }
    }
    std::vector<DecodedTensor> decoded = decode_constants(operands);
    steps_.push_back(make_step(operands));
    if (!steps_.back()->has_packed_constants()) {
      std::move(decoded.begin(), decoded.end(), std::back_inserter(decoded_));
    } else {
      for (const auto* input : operands.inputs) {
        if (input != nullptr && input->is_constant && input->coded_size == 0) {
          file_->release(input->data, input->size);
        }
      }
    }
  }
  if (poisons_) {
    dying_.resize(steps_.size() + 1);
    starting_.resize(steps_.size() + 1);
    const auto& records = *program().records();
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      const auto* record = records.Get(i);
      dying_[record->end() - 1].push_back(i);
      starting_[record->start()].push_back(i);
    }
  }
}

std::vector<Session::DecodedTensor> Session::decode_constants(Operands& operands) {
  std::vector<DecodedTensor> decoded;
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    auto& input = operands.inputs[i];
    const bool is_streamed = i == 1 && streams_weights(operands);
    if (input == nullptr || input->coded_size == 0 || is_streamed) {
      continue;
    }
    const std::string label = "step '" + operands.step.name()->str() + "'";
    const CodedWeights coded(input->data, input->coded_size, input->num_elements(), label,
                             symbols_);
    DecodedTensor made{{}, std::make_unique<TensorView>(*input)};
    try {
      made.elements.resize(input->num_elements());
    } catch (const std::bad_alloc&) {
      throw SystemError("no memory for the weights of " + label);
    }
    coded.decode();
    coded.visit([&](std::size_t position, float value) { made.elements[position] = value; });
    made.view->data = reinterpret_cast<std::byte*>(made.elements.data());
    made.view->coded_size = 0;
    input = made.view.get();
    decoded.push_back(std::move(made));
  }
  return decoded;
}

std::vector<StridedCopy::Axis> Session::axes(const program::Port& port) const {
  const auto& view = port_tensor(port);
  const auto element = static_cast<std::int64_t>(element_size(view.type));
  std::vector<StridedCopy::Axis> axes(view.rank());
  std::int64_t stride = element;
  for (std::size_t i = view.rank(); i-- > 0;) {
    axes[i].length = view.shape[i];
    axes[i].target = stride;
    stride *= static_cast<std::int64_t>(view.shape[i]);
  }
  // The caller's axes, innermost last, each where it is stored.
  stride = element;
  for (std::size_t axis = view.rank(); axis-- > 0;) {
    for (std::size_t i = 0; i < view.rank(); ++i) {
      if (port.permutation()->Get(static_cast<flatbuffers::uoffset_t>(i)) == axis) {
        axes[i].source = stride;
        stride *= static_cast<std::int64_t>(view.shape[i]);
      }
    }
  }
  return axes;
}

void Session::make_port_copies() {
  for (const auto* port : *program().inputs()) {
    feeds_.emplace_back(axes(*port), 0, 0, element_size(port_tensor(*port).type));
  }
  for (const auto* port : *program().outputs()) {
    auto back = axes(*port);
    for (auto& axis : back) {
      std::swap(axis.source, axis.target);
    }
    fetches_.emplace_back(std::move(back), 0, 0, element_size(port_tensor(*port).type));
  }
}

void Session::feed(std::size_t input, const std::byte* data) {
  const auto& view =
      port_tensor(*program().inputs()->Get(static_cast<flatbuffers::uoffset_t>(input)));
  if (view.size > 0) {
    feeds_[input].run(data, view.data, threads_->pool);
  }
}

void Session::fetch(std::size_t output, std::byte* data) const {
  const auto& view =
      port_tensor(*program().outputs()->Get(static_cast<flatbuffers::uoffset_t>(output)));
  if (view.size > 0) {
    fetches_[output].run(view.data, data, threads_->pool);
  }
}

void Session::run(std::size_t first, std::size_t last) {
  if (first > last || last > steps_.size()) {
    throw ProgramError("there are no steps " + std::to_string(first) + " to " +
                       std::to_string(last));
  }
  for (std::size_t step = first; step < last; ++step) {
    if (steps_[step] == nullptr) {
      throw ProgramError("step " + std::to_string(step) + " runs in another runtime");
    }
    if (poisons_) {
      poison_before(step);
    }
    if (is_profiling_) {
      const auto begun = std::chrono::steady_clock::now();
      steps_[step]->run();
      const auto spent = std::chrono::steady_clock::now() - begun;
      nanoseconds_[step] = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
    } else {
      steps_[step]->run();
    }
    if (poisons_) {
      poison_after(step);
    }
  }
}

void Session::poison_before(std::size_t step) {
  // Inputs and states begin before the first step, and hold what they should.
  if (step == 0) {
    return;
  }
  for (const auto index : starting_[step]) {
    const auto* record = program().records()->Get(index);
    arena_.poison(record->offset(), record->size());
  }
}

void Session::poison_after(std::size_t step) {
  if (step + 1 == steps_.size()) {
    return;  // outputs and states are still read
  }
  for (const auto index : dying_[step]) {
    const auto* record = program().records()->Get(index);
    arena_.poison(record->offset(), record->size());
  }
}

void Session::reset() {
  if (program().states() == nullptr) {
    return;
  }
  for (const auto* state : *program().states()) {
    const auto& view = tensors_[static_cast<std::size_t>(state->tensor())];
    if (state->initial() >= 0) {
      std::memcpy(view.data, tensors_[static_cast<std::size_t>(state->initial())].data, view.size);
    } else {
      std::memset(view.data, view.zero_point, view.size);
    }
  }
}

void Session::set_profiling(bool wanted) { is_profiling_ = wanted; }

}  // namespace arenite
