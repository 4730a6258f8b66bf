#include "halves.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convolution_checks.hpp"
#include "kernels/half.hpp"
#include "kernels/parallel.hpp"
#include "operand_checks.hpp"
#include "rows_read.hpp"
#include "steps/attention_operands.hpp"
#include "updated_inputs.hpp"

namespace arenite {

namespace {

using program::Operator;
using program::Type;

constexpr std::size_t kAlignment = 64;

bool is_half(const TensorView* view) { return view != nullptr && view->type == Type::float16; }

// Whether the kernel reads an input of 16-bit floats as it is.
bool takes_halves(const Operands& operands, std::size_t input) {
  if (operands.step.kernel_type() == Operator::Attention) {
    return input == kKeys || input == kValues;
  }
  return input == 1 && has_short_filter(operands);
}

bool is_one_image(const TensorView& view) {
  return view.rank() >= 3 && view.shape[0] == 1 && view.size > 0;
}

// An operand of 16-bit floats, and its image of 32 bits that the other step sees.
struct Widened {
  const TensorView* kept;
  std::unique_ptr<TensorView> image;
  std::size_t input;         // its position among the inputs, or the outputs
  std::size_t row_elements;  // of the whole, if it has no rows
  std::size_t extent;        // rows; 1 if it has none
  bool has_rows;             // some of which are converted at a time
  std::size_t ring = 0;      // rows that lie in the image at once
  StepVector<std::uint64_t> offsets{};
  StepVector<float> constant{};  // elements of a constant
  std::size_t end = 0;           // the row behind the last one converted in a turn
  // For each row of the result the first row that is read, and as its count the end.
  StepVector<RowRange> reads{};

  std::size_t image_bytes(std::size_t rows) const {
    return round_up(rows * row_elements * sizeof(float), kAlignment);
  }
  Half* row(std::size_t index) const {
    const std::uint64_t offset =
        kept->rows == nullptr ? index * row_elements * sizeof(Half) : kept->rows[index];
    return reinterpret_cast<Half*>(kept->data + offset);
  }
  float* image_row(std::size_t index) const {
    return image->as<float>() + index % ring * row_elements;
  }
};

Widened widened_operand(const TensorView& kept, std::size_t input, bool has_rows) {
  auto image = std::make_unique<TensorView>(kept);
  image->type = Type::float32;
  image->size = 2 * kept.size;
  image->rows = nullptr;
  const std::size_t extent = has_rows ? kept.shape[1] : 1;
  return {&kept, std::move(image), input, kept.num_elements() / extent, extent, has_rows};
}

// What is known of a step before its working memory is laid out.
struct Halves {
  StepVector<Widened> inputs;
  StepVector<Widened> constants;
  StepVector<Widened> outputs;
  std::size_t num_rows = 0;  // that turns count; 0: it runs whole
  bool takes_rows = false;   // into sums
};

std::optional<RowRange> rows_of(const Operands& operands, std::size_t input, RowRange rows) {
  return rows_read(operands.step, *operands.tensors, input, rows);
}

Halves halves_of(const Operands& operands) {
  Halves found;
  const TensorView* result = operands.outputs.empty() ? nullptr : operands.outputs[0];
  require(operands, result != nullptr, "it has no output");
  found.takes_rows = takes_rows(operands.step, *operands.tensors);
  const TensorView* counted = found.takes_rows ? operands.inputs[0] : result;
  if (operands.outputs.size() == 1 && is_one_image(*counted)) {
    found.num_rows = counted->shape[1];
  }
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    if (!is_half(operands.inputs[i]) || takes_halves(operands, i)) { continue; }
    const auto& kept = *operands.inputs[i];
    const bool has_rows = found.num_rows != 0 && is_one_image(kept) && !kept.is_constant &&
                          rows_of(operands, i, {0, 1}).has_value();
    auto& list = kept.is_constant ? found.constants : found.inputs;
    list.push_back(widened_operand(kept, i, has_rows));
  }
  for (std::size_t position = 0; position < operands.outputs.size(); ++position) {
    const TensorView* output = operands.outputs[position];
    if (!is_half(output)) { continue; }
    const bool has_rows = found.num_rows != 0 && !found.takes_rows && is_one_image(*output);
    found.outputs.push_back(widened_operand(*output, position, has_rows));
  }
  return found;
}

// Notes which rows of an input the rows of the result read: in the order in which these are made,
// as if none were read again once a later one was.
void note_reads(const Operands& operands, const Halves& halves, Widened& input) {
  StepVector<RowRange> reads;
  for (std::size_t row = 0; row < halves.num_rows; ++row) {
    const RowRange all{0, input.extent};
    RowRange read = rows_of(operands, input.input, {row, 1}).value_or(all);
    if (read.count == 0) { read = {input.extent, 0}; }
    reads.push_back({read.first, read.count == 0 ? 0 : read.first + read.count});
  }
  for (std::size_t row = reads.size(); row-- > 1;) {
    reads[row - 1].first = std::min(reads[row - 1].first, reads[row].first);
  }
  for (std::size_t row = 1; row < reads.size(); ++row) {
    reads[row].count = std::max(reads[row - 1].count, reads[row].count);
  }
  input.reads = std::move(reads);
}

// Rows of an input in the image at once for so many rows of the result, wherever these lie.
std::size_t rows_at_once(const Widened& input, std::size_t count) {
  std::size_t most = 1;
  for (std::size_t row = 0; row < input.reads.size(); ++row) {
    const std::size_t last = std::min(row + count, input.reads.size()) - 1;
    const std::size_t end = input.reads[last].count;
    most = std::max(most, end - std::min(end, input.reads[row].first));
  }
  return std::min(most, input.extent);
}

// Chooses how many rows lie in the images, for so many rows of the result at a time; 0 for all.
// Returns the bytes that images take.
std::size_t lay_out(Halves& halves, std::size_t count) {
  std::size_t bytes = 0;
  for (auto& input : halves.inputs) {
    input.ring = !input.has_rows || count == 0 ? input.extent : rows_at_once(input, count);
    bytes += input.image_bytes(input.ring);
  }
  for (auto& output : halves.outputs) {
    output.ring = !output.has_rows || count == 0 ? output.extent : std::min(count, output.extent);
    bytes += output.image_bytes(output.ring);
  }
  return bytes;
}

// Bytes of panels of a filter of 16-bit floats that are converted at a time: few, unless there is
// more room than images take.
std::size_t bytes_of_filter(const Operands& operands) {
  constexpr std::size_t kCached = std::size_t{1} << 14;
  constexpr std::size_t kFewest = 2;
  if (!has_short_filter(operands) || reads_short_filter(operands)) { return 0; }
  const auto& filter = *operands.inputs[1];
  const std::size_t panels = std::max<std::size_t>(filter.shape.empty() ? 0 : filter.shape[0], 1);
  const std::size_t panel = 2 * filter.size / panels;
  const std::size_t count = std::max(kCached / std::max<std::size_t>(panel, 1), kFewest);
  return round_up(std::min(count, panels) * panel, kAlignment);
}

void require_room(const Operands& operands, std::size_t needed, std::size_t given) {
  if (needed > given) {
    refuse(operands, "its working memory has " + std::to_string(given) +
                         " B for its 16-bit floats; it needs " + std::to_string(needed));
  }
}

// The most rows at a time whose images fit so many bytes.
std::size_t most_rows(const Operands& operands, Halves& halves, std::size_t bytes) {
  for (auto& input : halves.inputs) {
    if (input.has_rows) { note_reads(operands, halves, input); }
  }
  const std::size_t least = lay_out(halves, 1);
  require_room(operands, least, bytes);
  std::size_t low = 1;
  for (std::size_t high = halves.num_rows; low < high;) {
    const std::size_t middle = low + (high - low + 1) / 2;
    if (lay_out(halves, middle) <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  lay_out(halves, low);
  for (auto& input : halves.inputs) { input.reads = {}; }
  return low;
}

class StepOfHalves final : public Step {
 public:
  // Takes `rows_at_once` rows at a time; 0: all of them.
  StepOfHalves(const Operands& operands, Halves halves, std::size_t rows_at_once,
               std::unique_ptr<Step> inner)
      : step_(operands.step),
        tensors_(*operands.tensors),
        halves_(std::move(halves)),
        rows_at_once_(rows_at_once),
        inner_(std::move(inner)),
        threads_(operands.threads) {}

  void run() override {
    if (rows_at_once_ != 0) {
      run_rows({0, halves_.num_rows});
      return;
    }
    for (const auto& input : halves_.inputs) { widen_rows(input, {0, input.extent}); }
    inner_->run();
    for (const auto& output : halves_.outputs) { narrow_rows(output, {0, output.extent}); }
  }

  void check() const override { inner_->check(); }
  std::size_t count() const override { return inner_->count(); }
  bool makes_rows() const override {
    return rows_at_once_ != 0 && !halves_.takes_rows && inner_->makes_rows();
  }
  bool finds_rows(std::size_t input) const override {
    if (!makes_rows()) { return false; }
    for (const auto& each : halves_.inputs) {
      if (each.input == input) { return each.has_rows; }
    }
    return inner_->finds_rows(input);
  }

  void run_rows(RowRange rows) override {
    for (auto& input : halves_.inputs) {
      input.end = 0;
      if (!input.has_rows) { widen_rows(input, {0, input.extent}); }
    }
    for (std::size_t done = 0; done < rows.count; done += rows_at_once_) {
      const RowRange some{rows.first + done, std::min(rows_at_once_, rows.count - done)};
      for (auto& input : halves_.inputs) {
        if (input.has_rows) { widen_for(input, some); }
      }
      inner_->run_rows(some);
      for (const auto& output : halves_.outputs) {
        if (output.has_rows) { narrow_rows(output, some); }
      }
    }
    for (const auto& output : halves_.outputs) {
      if (!output.has_rows) { narrow_rows(output, {0, output.extent}); }
    }
  }

  bool has_packed(std::size_t input) const override {
    const auto& constants = halves_.constants;
    return inner_->has_packed(input) ||
           std::any_of(constants.begin(), constants.end(),
                       [input](const auto& each) { return each.input == input; });
  }
  std::size_t held_bytes() const override {
    std::size_t bytes = sizeof *inner_ + inner_->held_bytes();
    for (const auto* list : {&halves_.inputs, &halves_.constants, &halves_.outputs}) {
      bytes += heap_bytes(*list);
      for (const auto& each : *list) {
        bytes += sizeof *each.image + heap_bytes(each.image->shape) + heap_bytes(each.offsets) +
                 heap_bytes(each.constant);
      }
    }
    return bytes;
  }
  bool decodes() const override { return inner_->decodes(); }

 private:
  // Converts the rows of an input under some rows of the result that the last ones have not left.
  void widen_for(Widened& input, RowRange rows) const {
    const RowRange read =
        rows_read(step_, tensors_, input.input, rows).value_or(RowRange{0, input.extent});
    const std::size_t end = read.first + read.count;
    const std::size_t first = end < input.end ? read.first : std::max(read.first, input.end);
    widen_rows(input, {first, end - first});
    input.end = end;
  }

  void widen_rows(const Widened& input, RowRange rows) const {
    parallel(threads_, rows.count, 4 * input.row_elements,
             [&](std::size_t first, std::size_t count) {
               for (std::size_t row = rows.first + first; row < rows.first + first + count; ++row) {
                 widen(input.row(row), input.image_row(row), input.row_elements);
               }
             });
  }

  void narrow_rows(const Widened& output, RowRange rows) const {
    parallel(threads_, rows.count, 4 * output.row_elements,
             [&](std::size_t first, std::size_t count) {
               for (std::size_t row = rows.first + first; row < rows.first + first + count; ++row) {
                 narrow(output.image_row(row), output.row(row), output.row_elements);
               }
             });
  }

  const program::Step& step_;
  const std::vector<TensorView>& tensors_;
  Halves halves_;
  std::size_t rows_at_once_;
  std::unique_ptr<Step> inner_;
  pthreadpool_t threads_;
};

}  // namespace

bool computes_halves(const Operands& operands) {
  switch (operands.step.kernel_type()) {
    case Operator::BlockGather:
    case Operator::BlockProduct:
    case Operator::Convert:
    case Operator::Copy:
    case Operator::External:
    case Operator::Fetch:
    case Operator::Gather:
    case Operator::LoadWeights:
    case Operator::Spill:
    case Operator::Wait:
    case Operator::While: return false;
    default: break;
  }
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    if (is_half(operands.inputs[i]) && !takes_halves(operands, i)) { return true; }
  }
  return std::any_of(operands.outputs.begin(), operands.outputs.end(), is_half);
}

std::unique_ptr<Step> step_of_halves(const Operands& operands, MakeStep make) {
  for (const auto position : updated_inputs(operands.step)) {
    require(operands, position >= operands.inputs.size() || !is_half(operands.inputs[position]),
            "a state of it is of 16-bit floats");
  }
  Halves halves = halves_of(operands);
  const std::size_t bytes = operands.scratch == nullptr ? 0 : operands.scratch->size;
  std::byte* working_memory = require_scratch(operands, bytes);
  const std::size_t filter = bytes_of_filter(operands);
  const std::size_t all = lay_out(halves, 0) + filter;
  const bool is_whole = !operands.in_bands && (all <= bytes || halves.num_rows == 0);
  require(operands, is_whole || halves.num_rows != 0,
          "it runs by rows, but its 16-bit floats are no rows of one image");
  require(operands, !operands.in_bands || !halves.takes_rows,
          "it takes rows of 16-bit floats into sums in bands");
  require_room(operands, is_whole ? all : 0, bytes);
  std::size_t kept = filter;  // for the step that computes
  if (halves.takes_rows && !is_whole) {
    kept = round_up(operands.outputs[0]->num_elements() * sizeof(float), kAlignment);
  }
  const std::size_t rows_at_once =
      is_whole ? 0 : most_rows(operands, halves, bytes - std::min(kept, bytes));
  Operands inner = operands;
  std::byte* next = working_memory;
  const auto place = [&](Widened& each, const TensorView*& operand) {
    each.image->data = next;
    next += each.image_bytes(each.ring);
    if (each.ring < each.extent) {
      each.offsets.resize(each.extent);
      for (std::size_t row = 0; row < each.extent; ++row) {
        each.offsets[row] = row % each.ring * each.row_elements * sizeof(float);
      }
      each.image->rows = each.offsets.data();
    }
    operand = each.image.get();
  };
  for (auto& input : halves.inputs) { place(input, inner.inputs[input.input]); }
  for (auto& output : halves.outputs) { place(output, inner.outputs[output.input]); }
  for (auto& constant : halves.constants) {
    constant.constant.resize(constant.kept->num_elements());
    widen(constant.kept->as<Half>(), constant.constant.data(), constant.constant.size());
    constant.image->data = reinterpret_cast<std::byte*>(constant.constant.data());
    inner.inputs[constant.input] = constant.image.get();
  }
  TensorView rest;
  rest.type = Type::uint8;
  rest.data = next;
  rest.size = bytes - static_cast<std::size_t>(next - working_memory);
  rest.shape = {rest.size};
  inner.scratch = (is_whole || kept != 0) && rest.size != 0 ? &rest : nullptr;
  inner.in_bands = !is_whole;
  auto made = make(inner);
  return std::make_unique<StepOfHalves>(operands, std::move(halves), rows_at_once, std::move(made));
}

}  // namespace arenite
