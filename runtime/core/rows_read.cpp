#include "rows_read.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace arenite {

namespace {

using program::Operator;

constexpr std::size_t kFilter = 1;
constexpr std::size_t kAddend = 3;
constexpr std::size_t kScales = 4;

const TensorView* operand(const flatbuffers::Vector<std::int32_t>* indices, std::size_t position,
                          const std::vector<TensorView>& tensors) {
  if (indices == nullptr || position >= indices->size()) { return nullptr; }
  const auto index = indices->Get(static_cast<flatbuffers::uoffset_t>(position));
  return index < 0 ? nullptr : &tensors[static_cast<std::size_t>(index)];
}

// Numbers that are too large for a window are refused when its step is made, so here they may be
// anything that does not overflow.
std::int64_t number(const flatbuffers::Vector<std::uint32_t>* given, std::int64_t fallback) {
  return given == nullptr || given->size() == 0 ? fallback : std::int64_t{given->Get(0)};
}

// How windows lie over rows.
struct RowWindow {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t dilation;
  std::int64_t padding;  // above

  std::int64_t reach() const { return (kernel - 1) * dilation; }
};

template <typename Attributes>
RowWindow row_window(const Attributes& attributes, std::int64_t kernel) {
  return {kernel, std::max<std::int64_t>(number(attributes.strides(), 1), 1),
          number(attributes.dilations(), 1), number(attributes.padding(), 0)};
}

// Of a filter whose second axis are the rows of its window.
std::int64_t filter_rows(const TensorView* filter) {
  const bool has_rows = filter != nullptr && filter->rank() > 1;
  return has_rows ? static_cast<std::int64_t>(std::min<std::size_t>(filter->shape[1], 1u << 24))
                  : 1;
}

std::optional<RowWindow> window_of(const program::Step& step,
                                   const std::vector<TensorView>& tensors) {
  const auto* filter = operand(step.inputs(), kFilter, tensors);
  if (const auto* conv = step.kernel_as_Conv2D()) {
    // Packed integers state their window, which their filter does not show.
    const bool states = operand(step.inputs(), kScales, tensors) != nullptr;
    return row_window(*conv, states ? number(conv->kernel(), 1) : filter_rows(filter));
  }
  if (const auto* depthwise = step.kernel_as_DepthwiseConv2D()) {
    return row_window(*depthwise, filter_rows(filter));
  }
  if (const auto* pool = step.kernel_as_Pool2D()) {
    return row_window(*pool, number(pool->window(), 1));
  }
  return std::nullopt;
}

RowRange inside(std::int64_t first, std::int64_t end, std::size_t extent) {
  const auto limit = static_cast<std::int64_t>(extent);
  first = std::clamp<std::int64_t>(first, 0, limit);
  end = std::clamp<std::int64_t>(end, first, limit);
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(end - first)};
}

RowRange under_windows(const RowWindow& window, RowRange rows, std::size_t extent) {
  const auto first = static_cast<std::int64_t>(rows.first);
  const auto last = static_cast<std::int64_t>(rows.first + rows.count) - 1;
  return inside(first * window.stride - window.padding,
                last * window.stride - window.padding + window.reach() + 1, extent);
}

// The other way round: rows whose windows reach the rows that are made.
RowRange over_windows(const RowWindow& window, RowRange rows, std::size_t extent) {
  const auto first = static_cast<std::int64_t>(rows.first) + window.padding - window.reach();
  const auto last = static_cast<std::int64_t>(rows.first + rows.count) - 1 + window.padding;
  return inside(first <= 0 ? 0 : (first + window.stride - 1) / window.stride,
                last / window.stride + 1, extent);
}

std::optional<RowRange> rows_of_resize(const program::Resize2D& resize, RowRange rows,
                                       std::size_t extent) {
  std::int64_t first = static_cast<std::int64_t>(extent);
  std::int64_t end = 0;
  for (const auto* taps : {resize.row_low(), resize.row_high()}) {
    if (taps == nullptr || taps->size() == 0) { continue; }
    for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
      if (row >= taps->size()) { return std::nullopt; }
      const std::int64_t tap = taps->Get(static_cast<flatbuffers::uoffset_t>(row));
      first = std::min(first, tap);
      end = std::max(end, tap + 1);
    }
  }
  return inside(first, end, extent);
}

// Elements [first, last] that a move reads to fill elements [begin, end) of its output, or more of
// them; nothing if it cannot be told, which is so for moves that lead outside too.
struct ReadByMove {
  bool is_known;
  bool is_any;
  std::int64_t first;
  std::int64_t last;
};

ReadByMove read_by_move(const program::Move& move, std::int64_t begin, std::int64_t end,
                        std::int64_t limit) {
  constexpr ReadByMove kUnknown{false, true, 0, 0};
  const std::size_t axes = move.shape() == nullptr ? 0 : move.shape()->size();
  if (move.input_strides() == nullptr || move.output_strides() == nullptr ||
      move.input_strides()->size() != axes || move.output_strides()->size() != axes ||
      move.input_start() >= static_cast<std::uint64_t>(limit) ||
      move.output_start() >= static_cast<std::uint64_t>(limit)) {
    return kUnknown;
  }
  const auto from = static_cast<std::int64_t>(move.input_start());
  const auto to = static_cast<std::int64_t>(move.output_start());
  // The axis along which the output goes on fastest, and how far all others reach.
  std::int64_t length = 1;
  std::int64_t input_stride = 0;
  std::int64_t output_stride = 0;
  std::int64_t input_back = 0;  // a stride is below 0 where a move mirrors
  std::int64_t input_reach = 0;
  std::int64_t output_reach = 0;
  for (flatbuffers::uoffset_t axis = 0; axis < axes; ++axis) {
    std::int64_t input = move.input_strides()->Get(axis);
    std::int64_t output = move.output_strides()->Get(axis);
    const std::uint64_t stated = move.shape()->Get(axis);
    if (stated == 0) { return {true, false, 0, 0}; }
    if (stated == 1) {
      continue;  // its stride says nothing
    }
    if (output < 0 || input < -limit || input > limit || output > limit ||
        stated - 1 > static_cast<std::uint64_t>(
                         limit / std::max<std::int64_t>({input, -input, output, 1}))) {
      return kUnknown;
    }
    auto size = static_cast<std::int64_t>(stated);
    if (output > output_stride) {
      std::swap(input, input_stride);
      std::swap(output, output_stride);
      std::swap(size, length);
    }
    (input < 0 ? input_back : input_reach) += (size - 1) * input;
    output_reach += (size - 1) * output;
  }
  std::int64_t low = 0;
  std::int64_t high = length - 1;
  if (output_stride == 0) {  // one element
    high = begin <= to && to < end ? 0 : -1;
  } else {
    low = std::max(low, (begin - to - output_reach + output_stride - 1) / output_stride);
    high = std::min(high, end - 1 < to ? -1 : (end - 1 - to) / output_stride);
  }
  const auto [least, most] = std::minmax({low * input_stride, high * input_stride});
  return {true, low <= high, from + least + input_back, from + most + input_reach};
}

std::optional<RowRange> rows_of_moves(const program::Copy& copy, const program::Step& step,
                                      const std::vector<TensorView>& tensors, std::size_t input,
                                      RowRange rows) {
  const auto& source = *operand(step.inputs(), input, tensors);
  const auto row_elements = [](const TensorView& view) {
    return static_cast<std::int64_t>(view.num_elements() / std::max<std::size_t>(view.shape[1], 1));
  };
  const std::int64_t row = row_elements(source);
  RowRange read{0, 0};
  for (flatbuffers::uoffset_t i = 0; copy.moves() != nullptr && i < copy.moves()->size(); ++i) {
    const auto& move = *copy.moves()->Get(i);
    const auto* result = operand(step.outputs(), move.output(), tensors);
    if (move.input() != input) { continue; }
    if (result == nullptr || result->rank() < 2 || row == 0) { return std::nullopt; }
    const auto limit =
        static_cast<std::int64_t>(std::max(source.num_elements(), result->num_elements()));
    const auto begin = static_cast<std::int64_t>(rows.first) * row_elements(*result);
    const auto size = static_cast<std::int64_t>(rows.count) * row_elements(*result);
    const auto found = read_by_move(move, begin, begin + size, limit);
    if (!found.is_known) { return std::nullopt; }
    if (found.is_any) {
      const RowRange some = inside(found.first / row, found.last / row + 1, source.shape[1]);
      const std::size_t first = read.count == 0 ? some.first : std::min(read.first, some.first);
      const std::size_t last = std::max(read.first + read.count, some.first + some.count);
      read = {first, last - first};
    }
  }
  return read;
}

// Whether a row of a result of so many axes is made of the same row of an input that has as many.
bool keeps_rows(const program::Step& step, std::size_t rank, std::size_t input) {
  switch (step.kernel_type()) {
    case Operator::Unary:
    case Operator::Binary:
    case Operator::Select:
    case Operator::Convert:
    case Operator::MultiplyAdd: return true;
    case Operator::FullyConnected: return rank > 2 && (input == 0 || input == kAddend);
    case Operator::BlockProduct: return rank > 2 && input == 0;
    case Operator::Softmax:
    case Operator::LocalResponseNorm:
    case Operator::L2Norm:
    case Operator::Hardmax:
    case Operator::Rotary: return rank > 2;
    case Operator::LayerNorm: return rank > 1 + std::size_t{step.kernel_as_LayerNorm()->num_axes()};
    default: return false;
  }
}

}  // namespace

bool takes_rows(const program::Step& step, const std::vector<TensorView>& tensors) {
  const auto* source = operand(step.inputs(), 0, tensors);
  const auto* result = operand(step.outputs(), 0, tensors);
  if (source == nullptr || result == nullptr || source->rank() < 2) { return false; }
  if (const auto* pool = step.kernel_as_Pool2D()) {
    return pool->kind() == program::PoolKind::average && result->has_one_row;
  }
  const auto* reduce = step.kernel_as_Reduce();
  if (reduce == nullptr || reduce->axes() == nullptr ||
      (reduce->function() != program::ReduceFunction::sum &&
       reduce->function() != program::ReduceFunction::mean)) {
    return false;
  }
  const auto& axes = *reduce->axes();
  const auto has = [&](std::size_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  return has(1) && !has(source->rank() - 1);
}

std::optional<RowRange> rows_read(const program::Step& step, const std::vector<TensorView>& tensors,
                                  std::size_t input, RowRange rows) {
  const auto* source = operand(step.inputs(), input, tensors);
  const auto* result = operand(step.outputs(), 0, tensors);
  if (source == nullptr || result == nullptr || source->rank() < 2 || source->shape[0] != 1) {
    return std::nullopt;
  }
  const std::size_t extent = source->shape[1];
  if (takes_rows(step, tensors)) { return input == 0 ? std::optional(rows) : std::nullopt; }
  const bool is_like_result = source->rank() == result->rank() && extent == result->shape[1];
  if (const auto window = window_of(step, tensors)) {
    if (input == kAddend && is_like_result) { return rows; }
    return input == 0 ? std::optional(under_windows(*window, rows, extent)) : std::nullopt;
  }
  if (const auto* transposed = step.kernel_as_TransposedConv2D()) {
    const auto window =
        row_window(*transposed, filter_rows(operand(step.inputs(), kFilter, tensors)));
    return input == 0 ? std::optional(over_windows(window, rows, extent)) : std::nullopt;
  }
  if (const auto* resize = step.kernel_as_Resize2D()) {
    return input == 0 ? rows_of_resize(*resize, rows, extent) : std::nullopt;
  }
  if (const auto* copy = step.kernel_as_Copy()) {
    return rows_of_moves(*copy, step, tensors, input, rows);
  }
  if (const auto* arg_reduce = step.kernel_as_ArgReduce()) {
    // The result may have lost the last axis.
    const bool is_along_last = arg_reduce->axis() + 1 == source->rank() && source->rank() > 2;
    const bool has_same_rows = result->rank() > 1 && extent == result->shape[1];
    return is_along_last && has_same_rows ? std::optional(rows) : std::nullopt;
  }
  if (step.kernel_type() == Operator::Attention) {
    constexpr std::size_t kAddends = 3;
    const bool has_rows = extent == result->shape[1] && result->rank() == 3;
    return has_rows && (input == 0 || input == kAddends) ? std::optional(rows) : std::nullopt;
  }
  if (step.kernel_type() == Operator::Gather) {
    const bool has_rows = result->rank() > 2 && extent == result->shape[1];
    return has_rows && input == 1 ? std::optional(rows) : std::nullopt;
  }
  if (is_like_result && keeps_rows(step, result->rank(), input)) { return rows; }
  return std::nullopt;
}

}  // namespace arenite
