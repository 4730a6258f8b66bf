#include "program_session.hpp"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "checking.hpp"
#include "errors.hpp"
#include "inner_programs.hpp"
#include "lanes.hpp"
#include "lent_inputs.hpp"
#include "port_copies.hpp"
#include "processor_name.hpp"
#include "registry.hpp"
#include "resizing.hpp"
#include "rows_read.hpp"
#include "session_threads.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

constexpr std::int64_t kMaxGrowth = std::int64_t{1} << 40;  // rows in a run, more than any has

Tuning tuning_of(const program::Program& program) {
  if (program.tuned_on() == nullptr) { return Tuning::none; }
  return program.tuned_on()->string_view() == ProcessorName().text() ? Tuning::here
                                                                     : Tuning::elsewhere;
}

// How many rounds of a loop may have rows in a turn, of a step that has so many.
std::uint32_t rounds_with_rows(const program::Turn& turn, std::size_t rows, std::uint32_t times) {
  if (turn.count() == 0 || turn.stride() <= 0) { return times; }
  if (rows <= turn.first()) { return 0; }
  const auto stride = static_cast<std::size_t>(turn.stride());
  return static_cast<std::uint32_t>(
      std::min<std::size_t>((rows - turn.first() + stride - 1) / stride, times));
}

}  // namespace

ProgramSession::ProgramSession(std::shared_ptr<const MappedFile> file,
                               const program::Program& stated,
                               std::shared_ptr<SessionThreads> threads,
                               const SessionOptions& options)
    : file_(std::move(file)),
      program_(stated),
      tuning_(tuning_of(program_)),
      constants_(*file_, tensors_),
      threads_(std::move(threads)),
      is_guarded_(options.guard) {
  std::vector<Room> rooms;
  tensors_ = validated_tensors(program(), rooms);
  check_inner_programs(program(), options.depth);
  take_memories(options);
  bind();
  if (has_dimensions(program())) {
    auto places = sized_places(program(), tensors_, rooms);
    resizing_ = std::make_unique<Resizing>(program(), std::move(places), steps_, feeds_, fetches_);
  }
  make_steps(options);
  make_ports();
  if (resizing_ != nullptr) {
    counts_ = !resizing_->counted.empty();
    find_row_views();
    settle_memory();
  }
  make_lane();
  if (options.poison.has_value()) {
    poison_ = std::make_unique<Poison>(program(), arenas_, tensors_, *options.poison);
  }
  reset();
  begin_growing();
}

ProgramSession::~ProgramSession() {
  threads_->end_lane();  // before its steps go
}

void ProgramSession::begin_growing() {
  if (resizing_ == nullptr) { return; }
  auto sizes = resizing_->sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto& each = *program().dimensions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    sizes[i] = grows(each) ? 0 : sizes[i];
  }
  resize(sizes);
}

void ProgramSession::make_ports(bool is_running) {
  const auto make = [this, is_running](std::vector<const TensorView*>& written) {
    make_feeds(program(), tensors_, feeds_);
    make_fetches(program(), tensors_, fetches_);
    if (is_running) { return; }  // inputs may be lent, to steps that are not made again
    find_lendable_inputs(program(), tensors_, steps_, written, places_);
    if (resizing_ != nullptr) { resizing_->keep_apart(places_); }
  };
  if (resizing_ != nullptr) {
    resizing_->clear_ports();
    const StepMemory::Use use(resizing_->ports);
    return make(resizing_->written);
  }
  std::vector<const TensorView*> written;
  make(written);
}

void ProgramSession::settle_memory() {
  std::size_t of_ports = resizing_->ports.taken();
  resizing_->sizes = lowest_sizes(program());
  evaluate(program(), resizing_->sizes, resizing_->wanted);
  apply_sizes(false);
  of_ports = std::max(of_ports, resizing_->ports.taken());
  for (auto& each : resizing_->steps) {
    const StepMemory::Use use(each.memory);
    steps_[each.index].reset();
  }
  resizing_->clear_ports();
  resizing_->place(of_ports);
  resizing_->sizes = highest_sizes(program());
  evaluate(program(), resizing_->sizes, resizing_->wanted);
  apply_sizes(true);
}

const std::vector<std::int64_t>& ProgramSession::sizes() const {
  static const std::vector<std::int64_t> kNone;
  return resizing_ == nullptr ? kNone : resizing_->sizes;
}

const std::vector<std::int64_t>& ProgramSession::grown() const {
  return resizing_ == nullptr ? sizes() : resizing_->grown;
}

void ProgramSession::begin() const {
  threads_->require_here();
  for (std::size_t i = 0; i < grown().size(); ++i) {
    const auto& each = *program().dimensions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (grows(each) && grown()[i] != sizes()[i]) {
      throw SizeRangeError("states have grown to " + std::to_string(grown()[i]) +
                           " rows of dimension '" + each.name()->str() +
                           "': set the sizes, then write the inputs, then run");
    }
  }
}

void ProgramSession::end() {
  for (std::size_t i = 0; i < grown().size(); ++i) {
    const auto& each = *program().dimensions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (grows(each)) {
      const auto growth = resizing_->values[static_cast<std::size_t>(each.grows_by())];
      resizing_->grown[i] = std::clamp<std::int64_t>(growth, 0, kMaxGrowth) + sizes()[i];
    }
  }
}

std::vector<std::int64_t> ProgramSession::sizes_of(
    const std::vector<std::vector<std::int64_t>>& shapes, std::vector<std::int64_t> found) const {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& each = *program().dimensions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    found[i] = grows(each) ? grown()[i] : found[i];
  }
  std::vector<std::int64_t> values(resizing_ == nullptr ? 0 : resizing_->values.size());
  for (std::size_t i = 0; resizing_ != nullptr && i < resizing_->sources.size(); ++i) {
    const auto& source = resizing_->sources[i];
    if (source.input < shapes.size() && source.axis < shapes[source.input].size()) {
      find_size(program(), source, shapes[source.input][source.axis], found, values);
    }
  }
  return found;
}

void ProgramSession::resize(const std::vector<std::int64_t>& sizes) {
  threads_->require_here();
  if (sizes.size() != this->sizes().size()) {
    throw SizeRangeError("the program has " + std::to_string(this->sizes().size()) +
                         " dimensions; " + std::to_string(sizes.size()) + " sizes are given");
  }
  if (sizes.empty()) { return; }
  auto& next = resizing_->next;
  next = sizes;
  for (const auto& each : resizing_->counted) {
    next[each.dimension] = resizing_->sizes[each.dimension];
  }
  if (next == resizing_->sizes) {
    resizing_->grown = next;
    return;
  }
  require_inside(program(), next);
  resizing_->reset_counts(next);
  evaluate(program(), next, resizing_->wanted);
  try {
    apply_sizes(false);
  } catch (...) {
    resizing_->wanted = resizing_->values;
    apply_sizes(true);
    throw;
  }
  resizing_->sizes = resizing_->grown = next;
}

void ProgramSession::apply_count(std::size_t step) {
  if (!resizing_->note_count(step)) { return; }
  if (threads_->lane != nullptr) { threads_->lane->drain(); }
  const auto apply = [this, step](bool all) {
    evaluate(program(), resizing_->sizes, resizing_->wanted);
    apply_sizes(all, step);
  };
  try {
    apply(false);
  } catch (...) {
    resizing_->reset_counts(resizing_->sizes);
    apply(true);
    throw;
  }
}

void ProgramSession::apply_sizes(bool all, std::optional<std::size_t> counting) {
  resizing_->set(tensors_);
  bool resets = false;
  for (std::size_t i = 0; i < count(program().states()); ++i) {
    const auto& state = *program().states()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto& view = tensors_[static_cast<std::size_t>(state.tensor())];
    if (state.initial() >= 0 &&
        tensors_[static_cast<std::size_t>(state.initial())].size < view.size) {
      refuse("a state is larger than its start at these sizes");
    }
    resets = resets || resizing_->is_changed[static_cast<std::size_t>(state.tensor())];
  }
  resizing_->make_changed(all, counting.has_value() && !all ? *counting + 1 : 0);
  make_ports(counting.has_value());
  for (std::size_t i = 0; i < beside_.size(); ++i) {
    threads_->lane->replace(i, steps_[beside_[i]].get());
  }
  note_rows();
  if (resets) { reset(); }
  resizing_->values = resizing_->wanted;
}

void ProgramSession::find_row_views() {
  if (!has_turns(program())) { return; }
  for (const auto* step : *program().steps()) {
    const bool takes = takes_rows(*step, tensors_);
    const auto* list = takes ? step->inputs() : step->outputs();
    const auto* view = count(list) == 0 ? nullptr : find(list->Get(0));
    resizing_->summed.push_back(takes ? view->shape[1] : 0);
    resizing_->row_views.push_back(view == nullptr || view->rank() < 2 ? nullptr : view);
  }
  resizing_->rows.resize(steps_.size());
  resizing_->rounds.resize(program().loops()->size());
}

void ProgramSession::note_rows() {
  auto& rows = resizing_->rows;
  if (!has_turns(program())) { return; }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto* view = resizing_->row_views[i];
    rows[i] = view == nullptr ? 0 : view->shape[1];
  }
  flatbuffers::uoffset_t begin = 0;
  for (flatbuffers::uoffset_t i = 0; i < program().loops()->size(); ++i) {
    const auto& loop = *program().loops()->Get(i);
    std::uint32_t most = 1;
    for (std::uint32_t each = 0; each < loop.turns(); ++each) {
      const auto& turn = *program().turns()->Get(begin + each);
      most = std::max(
          most, rounds_with_rows(turn, std::max(rows[turn.step()], resizing_->summed[turn.step()]),
                                 loop.times()));
    }
    resizing_->rounds[i] = most;
    begin += loop.turns();
  }
}

void ProgramSession::take_memories(const SessionOptions& options) {
  const auto& memories = *program().memories();
  if (!options.buffers.empty() && options.buffers.size() != memories.size()) {
    throw SystemError("the program has " + std::to_string(memories.size()) + " memories; " +
                      std::to_string(options.buffers.size()) + " are given");
  }
  arenas_.reserve(memories.size());
  files_.resize(memories.size());
  for (flatbuffers::uoffset_t i = 0; i < memories.size(); ++i) {
    const auto& memory = *memories.Get(i);
    const Buffer buffer = options.buffers.empty() ? Buffer{} : options.buffers[i];
    if (memory.spilled() && buffer.data == nullptr) {
      arenas_.emplace_back();
      files_[i] = std::make_unique<SpillFile>(memory.size());
    } else {
      arenas_.emplace_back(static_cast<std::size_t>(memory.size()), memory.alignment(),
                           options.guard, buffer);
    }
  }
}

void ProgramSession::bind() {
  const auto& tensors = *program().tensors();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto& tensor = *tensors.Get(static_cast<flatbuffers::uoffset_t>(i));
    if (!tensors_[i].is_constant && files_[tensor.memory()] != nullptr) {
      tensors_[i].file = files_[tensor.memory()].get();
      continue;
    }
    // Constants are mapped read-only; no step writes one.
    std::byte* base = tensors_[i].is_constant ? const_cast<std::byte*>(file_->weights())
                                              : arenas_[tensor.memory()].data();
    // Rows are counted from the start of the memory.
    const std::uint64_t offset = tensors_[i].rows == nullptr ? tensor.offset() : 0;
    tensors_[i].data = base + static_cast<std::size_t>(offset);
  }
}

ProgramSession* ProgramSession::make_inner(std::size_t index, const TensorView* scratch,
                                           const program::Step& step, SessionOptions options) {
  const auto& part = *program().inner()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const auto& memory = *part.memories()->Get(0);
  const std::uint64_t given = scratch == nullptr ? 0 : scratch->size;
  const auto place = scratch == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(scratch->data);
  const std::uint64_t alignment = std::max<std::uint64_t>(memory.alignment(), Arena::kMinAlignment);
  if (scratch == nullptr || memory.size() > given || place % alignment != 0) {
    refuse("step " + quoted(step.name()) + ": its working memory of " + std::to_string(given) +
           " B does not hold the " + std::to_string(memory.size()) +
           " B of its program, or is not aligned to " + std::to_string(alignment) + " B");
  }
  // Behind the end of the arena that it lies in is as much as kernels may read.
  ++options.depth;
  options.buffers = {{scratch->data, static_cast<std::size_t>(memory.size()) + Arena::kSlack}};
  inner_.push_back(std::make_unique<ProgramSession>(file_, part, threads_, options));
  constants_.note_resident_of(inner_.back()->constants_);
  return inner_.back().get();
}

void ProgramSession::make_steps(const SessionOptions& options) {
  const auto& steps = *program().steps();
  std::vector<bool> in_bands(steps.size());
  for (TurnCursor turn(program()); !turn.is_at_end(); turn.next()) {
    const RunTurn each = *turn;
    in_bands[each.step()] = in_bands[each.step()] || each.count() != 0;
  }
  steps_.reserve(steps.size());
  for (const auto* step : steps) {
    SizedStep* sized = resizing_ == nullptr ? nullptr : resizing_->find(steps_.size());
    Operands operands{sized == nullptr ? *step : sized->stated(program()),
                      {},
                      {},
                      find(step->scratch()),
                      in_bands[steps_.size()],
                      threads_->pool,
                      constants_.decoder_of(*step),
                      file_.get(),
                      tuning_,
                      &tensors_,
                      sized != nullptr,
                      nullptr,
                      {}};
    if (const auto* loop = step->kernel_as_While(); loop != nullptr) {
      operands.inner = {make_inner(loop->condition(), operands.scratch, *step, options),
                        make_inner(loop->body(), operands.scratch, *step, options)};
    }
    if (step->inputs() != nullptr) {
      for (const auto index : *step->inputs()) { operands.inputs.push_back(find(index)); }
    }
    if (step->outputs() != nullptr) {
      for (const auto index : *step->outputs()) { operands.outputs.push_back(find(index)); }
    }
    if (step->kernel_type() == program::Operator::External) {
      steps_.push_back(nullptr);
      constants_.settle(*step, nullptr, {});
      continue;
    }
    std::vector<Constants::Decoded> decoded = constants_.decode(operands);
    if (sized != nullptr) {
      make_sized(*sized, std::move(operands));
      constants_.settle(*step, nullptr, std::move(decoded));  // it may read all of them again
      continue;
    }
    steps_.push_back(make_step(operands));
    constants_.settle(*step, steps_.back().get(), std::move(decoded));
  }
  for (const auto* port : *program().outputs()) { constants_.note_resident(port_tensor(*port)); }
  bool decodes_in_runs = false;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const bool decodes = steps_[i] != nullptr && steps_[i]->decodes();
    decodes_in_runs = decodes_in_runs || (decodes && !is_beside(i));
  }
  if (!decodes_in_runs) { constants_.release_decoder(); }
}

void ProgramSession::make_sized(SizedStep& sized, Operands operands) {
  const auto& constants = operands.inputs;
  const bool keeps =
      sized.numbers.empty() &&
      std::none_of(constants.begin(), constants.end(), [this](const TensorView* each) {
        return each != nullptr && each->is_constant && each >= tensors_.data() &&
               each < tensors_.data() + tensors_.size() &&
               resizing_->is_changed[static_cast<std::size_t>(each - tensors_.data())];
      });
  resizing_->keep_rows(sized.index, operands, tensors_);
  operands.kept = keeps ? &sized.kept : nullptr;
  // In bands, the rows that a row reads must be among those that it reads at the highest sizes.
  for (std::size_t i = 0; operands.in_bands && i < sized.numbers.size(); ++i) {
    if (sized.numbers[i].first.is_padding_above()) {
      refuse("step " + quoted(operands.step.name()) +
             " runs by rows, and the padding above them depends on sizes");
    }
  }
  sized.operands = std::make_unique<Operands>(std::move(operands));
  steps_.emplace_back();
  resizing_->make(sized);
}

bool ProgramSession::gains_by_lane() const {
  // Who writes to a file waits for a device, whatever processors there are.
  const bool has_files =
      std::any_of(files_.begin(), files_.end(), [](const auto& file) { return file != nullptr; });
  cpu_set_t allowed;
  return has_files || sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
         CPU_COUNT(&allowed) > 1;
}

void ProgramSession::make_lane() {
  if (!gains_by_lane()) { return; }
  const auto& steps = *program().steps();
  std::vector<Step*> beside;
  std::vector<std::size_t> done(steps.size());  // by step of the lane: so many are, once it is
  for (TurnCursor turn(program()); !turn.is_at_end(); turn.next()) {
    const std::size_t step = (*turn).step();
    if (runs_beside(*steps.Get(static_cast<flatbuffers::uoffset_t>(step)))) {
      beside_.push_back(step);
      beside.push_back(steps_[step].get());
      done[step] = beside.size();
    }
  }
  if (beside.empty()) { return; }
  awaited_.resize(steps.size());
  for (flatbuffers::uoffset_t i = 0; i < steps.size(); ++i) {
    if (steps.Get(i)->awaits() != nullptr) {
      for (const auto each : *steps.Get(i)->awaits()) {
        awaited_[i] = std::max(awaited_[i], done[each]);
      }
    }
  }
  threads_->lane = std::make_unique<Lane>(std::move(beside));
}

SessionMemory ProgramSession::memory() const {
  SessionMemory memory;
  for (const auto& arena : arenas_) {
    memory.memories += arena.data() == nullptr ? 0 : arena.size() + Arena::kSlack;
  }
  memory.decoded = constants_.decoded_bytes();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto& step = steps_[i];
    memory.kernels += step == nullptr ? 0 : step->held_bytes();
    const bool is_apart = resizing_ == nullptr || resizing_->find(i) == nullptr;
    memory.kernels += step != nullptr && is_apart ? malloc_usable_size(step.get()) : 0;
  }
  memory.kernels += resizing_ == nullptr ? 0 : resizing_->held_bytes();
  memory.weights_resident = constants_.resident_bytes();
  memory.other = sizeof *this + heap_bytes(tensors_) + heap_bytes(arenas_) + heap_bytes(steps_) +
                 heap_bytes(beside_) + heap_bytes(awaited_) + held_bytes_of(feeds_) +
                 held_bytes_of(fetches_) + heap_bytes(places_) + heap_bytes(nanoseconds_);
  memory.other += heap_bytes(inner_);
  for (const auto& each : inner_) {
    const SessionMemory held = each->memory();
    memory.decoded += held.decoded;
    memory.kernels += held.kernels;
    memory.other += held.other;
  }
  for (const auto& tensor : tensors_) {
    memory.other += heap_bytes(tensor.shape) + heap_bytes(tensor.scales);
  }
  return memory;
}

void ProgramSession::feed(std::size_t input, const std::byte* data) {
  threads_->require_here();
  const auto& view =
      port_tensor(*program().inputs()->Get(static_cast<flatbuffers::uoffset_t>(input)));
  if (view.size > 0) { feeds_[input].run(data, view.data, threads_->pool); }
}

void ProgramSession::lend(std::size_t input, const std::byte* data) {
  threads_->require_here();
  const auto& view =
      port_tensor(*program().inputs()->Get(static_cast<flatbuffers::uoffset_t>(input)));
  // Of an array in the arena steps might overwrite bytes before they are read.
  const bool is_apart = std::all_of(arenas_.begin(), arenas_.end(), [&](const Arena& arena) {
    return data + view.size <= arena.data() || arena.data() + arena.size() <= data;
  });
  if (places_[input] == nullptr || !is_apart) { return feed(input, data); }
  *places_[input] = data;
  has_lent_ = true;
}

void ProgramSession::fetch(std::size_t output, std::byte* data) const {
  threads_->require_here();
  const auto& view =
      port_tensor(*program().outputs()->Get(static_cast<flatbuffers::uoffset_t>(output)));
  if (view.size > 0) { fetches_[output].run_past_caches(view.data, data, threads_->pool); }
}

void ProgramSession::run(std::size_t first, std::size_t last) {
  threads_->require_here();
  if (first > last || last > num_turns()) {
    throw ProgramError("there are no turns " + std::to_string(first) + " to " +
                       std::to_string(last));
  }
  Lane* lane = threads_->lane.get();
  std::size_t issued = num_beside_before(first);
  if (lane != nullptr) { lane->begin(issued); }
  // Poison and profiles are by turn.
  const bool may_skip =
      resizing_ != nullptr && has_turns(program()) && poison_ == nullptr && !is_profiling_;
  for (TurnCursor cursor(program(), first, may_skip ? &resizing_->rounds : nullptr);
       cursor.index() < last; cursor.next()) {
    const std::size_t index = cursor.index();
    const RunTurn turn = *cursor;
    if (steps_[turn.step()] == nullptr) {
      throw ProgramError("step " + std::to_string(turn.step()) + " runs in another runtime");
    }
    const auto begun =
        is_profiling_ ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    if (lane != nullptr) { lane->wait(awaited_[turn.step()]); }
    if (poison_ != nullptr) { poison_->before(index); }
    if (lane != nullptr && is_beside(turn.step())) {
      lane->issue(++issued);
    } else {
      run_turn(turn);
    }
    if (is_profiling_) {
      const auto spent = std::chrono::steady_clock::now() - begun;
      nanoseconds_[index] = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
    }
    if (poison_ != nullptr) { poison_->after(index); }
  }
  if (last == num_turns()) { settle(); }
}

void ProgramSession::settle() {
  threads_->require_here();
  for (flatbuffers::uoffset_t i = 0; has_lent_ && i < program().inputs()->size(); ++i) {
    if (places_[i] != nullptr) { *places_[i] = port_tensor(*program().inputs()->Get(i)).data; }
  }
  has_lent_ = false;
  if (threads_->lane != nullptr) { threads_->lane->drain(); }
  for (const auto& file : files_) {
    if (file != nullptr) { file->require_sound(); }
  }
}

bool ProgramSession::is_beside(std::size_t step) const {
  return runs_beside(*program().steps()->Get(static_cast<flatbuffers::uoffset_t>(step)));
}

std::size_t ProgramSession::num_beside_before(std::size_t end) const {
  std::size_t count = 0;
  for (TurnCursor turn(program()); has_lane() && turn.index() < end; turn.next()) {
    count += is_beside((*turn).step()) ? 1 : 0;
  }
  return count;
}

void ProgramSession::run_turn(const RunTurn& turn) {
  Step& step = *steps_[turn.step()];
  RowRange rows{turn.first(), turn.count()};
  if (rows.count != 0 && resizing_ != nullptr) {  // there may be fewer at these sizes
    const std::size_t end = std::max<std::size_t>(resizing_->rows[turn.step()], rows.first);
    rows.count = std::min(rows.count, end - rows.first);
    const std::size_t summed = resizing_->summed[turn.step()];
    if (summed != 0) {
      return step.sum_rows(rows, std::size_t{turn.first()} + turn.count() == summed);
    }
    if (rows.count == 0) { return; }
  }
  if (rows.count == 0) {
    if (is_guarded_) { step.check(); }
    step.run();
  } else {
    if (is_guarded_) { step.check_rows(rows); }
    step.run_rows(rows);
  }
  if (counts_) { apply_count(turn.step()); }
}

std::vector<std::int64_t> ProgramSession::nanoseconds() const {
  std::vector<std::int64_t> found(steps_.size());
  for (TurnCursor turn(program()); turn.index() < nanoseconds_.size(); turn.next()) {
    found[(*turn).step()] += nanoseconds_[turn.index()];
  }
  for (std::size_t i = 0; i < beside_.size(); ++i) {
    found[beside_[i]] = threads_->lane->nanoseconds(i);
  }
  return found;
}

void ProgramSession::reset() {
  if (resizing_ != nullptr) { std::fill(resizing_->grown.begin(), resizing_->grown.end(), 0); }
  if (program().states() == nullptr) { return; }
  for (const auto* state : *program().states()) {
    const auto& view = tensors_[static_cast<std::size_t>(state->tensor())];
    if (state->initial() >= 0) {
      std::memcpy(view.data, tensors_[static_cast<std::size_t>(state->initial())].data, view.size);
    } else {
      std::memset(view.data, view.zero_point, view.size);
    }
  }
}

void ProgramSession::truncate(std::int64_t rows) {
  for (std::size_t i = 0; i < grown().size(); ++i) {
    resizing_->grown[i] = std::min(resizing_->grown[i], std::max<std::int64_t>(rows, 0));
  }
}

void ProgramSession::note_nanoseconds(std::size_t turn, std::int64_t value) {
  if (is_profiling_) { nanoseconds_.at(turn) = value; }
}

void ProgramSession::set_profiling(bool wanted) {
  is_profiling_ = wanted;
  nanoseconds_.resize(num_turns());
}

}  // namespace arenite
