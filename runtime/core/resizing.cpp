#include "resizing.hpp"

#include <algorithm>

#include "checking.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

// The operands of a step that are among some tensors.
std::vector<std::size_t> operands_among(const program::Step& step,
                                        const std::vector<bool>& chosen) {
  std::vector<std::size_t> found;
  const auto add = [&](std::int64_t tensor) {
    if (tensor >= 0 && chosen[static_cast<std::size_t>(tensor)]) {
      found.push_back(static_cast<std::size_t>(tensor));
    }
  };
  for (const auto* list : {step.inputs(), step.outputs()}) {
    for (flatbuffers::uoffset_t i = 0; i < count(list); ++i) { add(list->Get(i)); }
  }
  add(step.scratch());
  return found;
}

}  // namespace

const program::Step& SizedStep::stated(const program::Program& program) const {
  return copy.data() == nullptr ? *program.steps()->Get(static_cast<flatbuffers::uoffset_t>(index))
                                : *flatbuffers::GetRoot<program::Step>(copy.data());
}

Resizing::Resizing(const program::Program& stated, std::vector<SizedPlace> all_places,
                   std::vector<std::unique_ptr<Step>>& all_steps,
                   std::vector<StridedCopy>& all_feeds, std::vector<StridedCopy>& all_fetches)
    : program(stated),
      lengths(sized_lengths(stated)),
      places(std::move(all_places)),
      made(all_steps),
      feeds(all_feeds),
      fetches(all_fetches),
      sizes(highest_sizes(stated)),
      next(sizes),
      values(count(stated.expressions())),
      wanted(values.size()),
      grown(sizes.size()),
      sources(size_sources(stated)),
      is_changed(stated.tensors()->size()),
      is_read(stated.tensors()->size()) {
  evaluate(program, sizes, values);
  for (const auto& each : lengths) { is_changed[each.tensor] = true; }
  for (const auto& each : places) { is_changed[each.tensor] = true; }
  std::size_t outputs = 0;
  std::size_t number = 0;
  for (std::size_t i = 0; i < program.steps()->size(); ++i) {
    const auto& step = *program.steps()->Get(static_cast<flatbuffers::uoffset_t>(i));
    outputs += count(step.outputs());
    const std::size_t first = number;
    const auto numbered = [&] {
      return number < count(program.numbers()) &&
             program.numbers()->Get(static_cast<flatbuffers::uoffset_t>(number))->step() == i;
    };
    while (numbered()) { ++number; }
    auto varying = operands_among(step, is_changed);
    // A step of another runtime is given its tensors before each run.
    if (step.kernel_type() == program::Operator::External || (first == number && varying.empty())) {
      continue;
    }
    steps.emplace_back();
    auto& sized = steps.back();
    sized.index = i;
    sized.tensors = std::move(varying);
    for (flatbuffers::uoffset_t k = 0; k < count(step.inputs()); ++k) {
      const auto input = step.inputs()->Get(k);
      if (input >= 0) { is_read[static_cast<std::size_t>(input)] = true; }
    }
    if (first == number) { continue; }
    sized.copy = copied_step(step);
    for (std::size_t k = first; k < number; ++k) {
      const auto& each = *program.numbers()->Get(static_cast<flatbuffers::uoffset_t>(k));
      sized.numbers.emplace_back(StatedNumber(sized.stated(program), each.number()),
                                 each.expression());
    }
  }
  written.reserve(outputs);
}

Resizing::~Resizing() {
  for (auto& each : steps) {
    const StepMemory::Use use(each.memory);
    if (each.index < made.size()) { made[each.index].reset(); }
  }
  clear_ports();
}

void Resizing::clear_ports() {
  const StepMemory::Use use(ports);
  feeds.clear();
  fetches.clear();
  ports.restart();
}

SizedStep* Resizing::find(std::size_t step) {
  const auto found =
      std::lower_bound(steps.begin(), steps.end(), step,
                       [](const SizedStep& each, std::size_t index) { return each.index < index; });
  return found == steps.end() || found->index != step ? nullptr : &*found;
}

void Resizing::make(SizedStep& step) {
  const StepMemory::Use use(step.memory);
  made[step.index].reset();
  step.memory.restart();
  made[step.index] = make_step(*step.operands);
  step.most_taken = std::max(step.most_taken, step.memory.taken());
  step.is_changed = false;
}

void Resizing::set(std::vector<TensorView>& tensors) {
  std::fill(is_changed.begin(), is_changed.end(), false);
  const auto& stated = *program.tensors();
  const auto stated_tensor = [&stated](std::size_t tensor) -> const program::Tensor& {
    return *stated.Get(static_cast<flatbuffers::uoffset_t>(tensor));
  };
  for (const auto& each : lengths) {
    if (each.set(tensors[each.tensor], stated_tensor(each.tensor), wanted)) {
      is_changed[each.tensor] = true;
    }
  }
  for (const auto& each : places) {
    auto& view = tensors[each.tensor];
    const auto* before = view.data;
    each.place(view, stated_tensor(each.tensor), wanted);
    if (view.data != before) { is_changed[each.tensor] = true; }
  }
  for (auto& each : counted) { each.rows.data = tensors[each.tensor].data; }
  for (auto& step : steps) {
    for (const auto& [number, expression] : step.numbers) {
      if (number.read() != wanted[expression]) {
        number.write(wanted[expression]);
        step.is_changed = true;
      }
    }
  }
}

void Resizing::make_changed(bool all, std::size_t first) {
  for (auto& step : steps) {
    if (step.index < first) { continue; }
    const auto changed = [this](std::size_t tensor) { return is_changed[tensor]; };
    if (all || step.is_changed || std::any_of(step.tensors.begin(), step.tensors.end(), changed)) {
      make(step);
    }
  }
}

bool Resizing::note_count(std::size_t step) {
  bool is_other = false;
  for (const auto& each : counted) {
    if (each.step != step) { continue; }
    const auto found = static_cast<std::int64_t>(std::min(made[step]->count(), each.rows.shape[0]));
    is_other = is_other || sizes[each.dimension] != found;
    sizes[each.dimension] = found;
  }
  // What is not counted yet may contradict the new sizes; nothing contradicts empty tensors.
  for (const auto& each : counted) {
    if (is_other && each.step > step) { sizes[each.dimension] = 0; }
  }
  return is_other;
}

void Resizing::reset_counts(std::vector<std::int64_t>& values_of) const {
  for (const auto& each : counted) {
    values_of[each.dimension] = static_cast<std::int64_t>(each.rows.shape[0]);
  }
}

void Resizing::keep_rows(std::size_t step, Operands& operands,
                         const std::vector<TensorView>& tensors) {
  for (flatbuffers::uoffset_t i = 0; i < program.dimensions()->size(); ++i) {
    const auto counted_by = program.dimensions()->Get(i)->counted_by();
    if (counted_by < 0 || static_cast<std::size_t>(counted_by) != step) { continue; }
    const auto tensor = static_cast<std::size_t>(
        program.steps()->Get(static_cast<flatbuffers::uoffset_t>(step))->outputs()->Get(0));
    counted.push_back({i, step, tensor, tensors[tensor]});
    operands.outputs[0] = &counted.back().rows;
  }
}

void Resizing::keep_apart(std::vector<const std::byte**>& places) const {
  for (std::size_t i = 0; !counted.empty() && i < places.size(); ++i) {
    const auto tensor = program.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i))->tensor();
    if (is_read[static_cast<std::size_t>(tensor)]) { places[i] = nullptr; }
  }
}

void Resizing::place(std::size_t of_ports) {
  const auto room = [](std::size_t taken) {
    const std::size_t most = taken + taken / 4 + 256;
    return (most + StepMemory::kAlignment - 1) / StepMemory::kAlignment * StepMemory::kAlignment;
  };
  block_size = room(of_ports);
  for (auto& each : steps) { block_size += room(each.most_taken); }
  block = std::make_unique<std::byte[]>(block_size + StepMemory::kAlignment);
  const auto at = reinterpret_cast<std::uintptr_t>(block.get());
  std::byte* next =
      block.get() + (StepMemory::kAlignment - at % StepMemory::kAlignment) % StepMemory::kAlignment;
  ports.place(next, room(of_ports));
  next += room(of_ports);
  for (auto& each : steps) {
    each.memory.place(next, room(each.most_taken));
    next += room(each.most_taken);
  }
}

std::size_t Resizing::held_bytes() const {
  std::size_t bytes = block_size + heap_bytes(sizes) + heap_bytes(next) + heap_bytes(values) +
                      heap_bytes(wanted) + heap_bytes(grown) + heap_bytes(row_views) +
                      heap_bytes(rows) + heap_bytes(rounds) + heap_bytes(summed) +
                      heap_bytes(lengths) + heap_bytes(places) + heap_bytes(sources) +
                      heap_bytes(written) + (is_changed.capacity() + is_read.capacity()) / 8;
  for (const auto& each : lengths) { bytes += heap_bytes(each.axes); }
  for (const auto& each : steps) {
    bytes += sizeof each + sizeof *each.operands + heap_bytes(each.tensors) +
             heap_bytes(each.numbers) + each.copy.size() + heap_bytes(each.operands->inputs) +
             heap_bytes(each.operands->outputs);
  }
  return bytes;
}

}  // namespace arenite
