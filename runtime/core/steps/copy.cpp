// Strided moves of elements: concatenation, slices, padding, transposes.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "checking.hpp"
#include "kernels/strided_copy.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "row_copy.hpp"
#include "steps/by_rows.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

constexpr std::size_t kMaxAxes = 16;

// The address of an input that is among the parts of a step once.
template <typename Part>
const std::byte** place_among(StepVector<Part>& parts, std::size_t input,
                              const std::byte* Part::* data) {
  const std::byte** found = nullptr;
  for (Part& each : parts) {
    if (each.input != input) { continue; }
    if (found != nullptr) { return nullptr; }
    found = &(each.*data);
  }
  return found;
}

class CopyStep final : public Step {
 public:
  struct Part {
    StridedCopy copy;
    std::size_t input;
    const std::byte* source;
    std::byte* target;

    std::size_t held_bytes() const { return copy.held_bytes(); }
  };

  CopyStep(StepVector<Part> parts, StepVector<const TensorView*> filled, std::string fill,
           pthreadpool* threads)
      : parts_(std::move(parts)),
        filled_(std::move(filled)),
        fill_(std::move(fill)),
        threads_(threads) {}

  void run() override {
    for (const auto* view : filled_) { fill_with(fill_, view->data, view->size); }
    for (const auto& part : parts_) { part.copy.run(part.source, part.target, threads_); }
  }

  const std::byte** place_of(std::size_t input) override {
    return place_among(parts_, input, &Part::source);
  }

  std::size_t held_bytes() const override { return held_bytes_of(parts_) + heap_bytes(filled_); }

 private:
  StepVector<Part> parts_;
  StepVector<const TensorView*> filled_;
  std::string fill_;
  pthreadpool* threads_;
};

// Joins tensors row by row; one of them may lie at the start of the result.
//
// A row of the result is one row of each source, in order. The last row is made first, so that the
// rows of a source at the start of the result are read before they are written over.
class RowJoinStep final : public Step {
 public:
  struct Source {
    std::size_t input;
    const std::byte* data;
    std::size_t row;    // bytes of a row
    std::size_t begin;  // first byte in a row of the result
  };

  // Sizes in bytes. `sources[0]` alone may share bytes with the target, and begins where it does.
  RowJoinStep(StepVector<Source> sources, std::byte* target, std::size_t num_rows, std::size_t row)
      : sources_(std::move(sources)), target_(target), num_rows_(num_rows), row_(row) {}

  void run() override {
    for (std::size_t row = num_rows_; row-- > 0;) {
      std::byte* const target = target_ + row * row_;
      // The source that overlaps the target comes first: its row may reach into the parts of the
      // others.
      for (const auto& source : sources_) {
        std::memmove(target + source.begin, source.data + row * source.row, source.row);
      }
    }
  }
  const std::byte** place_of(std::size_t input) override {
    return place_among(sources_, input, &Source::data);
  }
  std::size_t held_bytes() const override { return heap_bytes(sources_); }

 private:
  StepVector<Source> sources_;
  std::byte* target_;
  std::size_t num_rows_;
  std::size_t row_;
};

// Bytes [begin, end) of memory.
struct Bytes {
  const std::byte* begin;
  const std::byte* end;
};

// Returns the bytes of a tensor from the first to the last of a strided region, which must lie
// inside. All numbers in elements.
Bytes require_inside(const Operands& operands, const TensorView& view, std::uint64_t start,
                     const flatbuffers::Vector<std::uint64_t>& shape,
                     const flatbuffers::Vector<std::int64_t>& strides) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 46;
  const auto count = static_cast<std::int64_t>(view.num_elements());
  require(operands, start < static_cast<std::uint64_t>(kLimit), "a move begins outside");
  auto lowest = static_cast<std::int64_t>(start);
  auto highest = lowest;
  for (flatbuffers::uoffset_t axis = 0; axis < shape.size(); ++axis) {
    const std::uint64_t length = shape.Get(axis);
    const std::int64_t stride = strides.Get(axis);
    require(operands,
            length > 0 && length < static_cast<std::uint64_t>(kLimit) && stride > -kLimit &&
                stride < kLimit,
            "a move is too large");
    const auto steps = static_cast<std::int64_t>(length - 1);
    std::int64_t reach = 0;
    const bool overflows = __builtin_mul_overflow(stride, steps, &reach);
    require(operands, !overflows && reach >= -kLimit && reach <= kLimit, "a move is too large");
    (stride < 0 ? lowest : highest) += reach;
    require(operands, lowest >= 0 && highest < kLimit, "a move reaches outside its tensor");
  }
  require(operands, highest < count, "a move reaches outside its tensor");
  const auto element = static_cast<std::int64_t>(element_size(view.type));
  return {view.data + lowest * element, view.data + (highest + 1) * element};
}

// Requires that a move without empty axes moves no more elements than its target has.
void require_room(const Operands& operands, const TensorView& target,
                  const flatbuffers::Vector<std::uint64_t>& shape) {
  std::uint64_t moved = 1;
  bool overflows = false;
  for (const std::uint64_t length : shape) {
    overflows = overflows || __builtin_mul_overflow(moved, length, &moved);
  }
  require(operands, !overflows && moved <= target.num_elements(),
          "a move is larger than its target");
}

// A move that has elements, and the bytes between the first and the last that it touches.
struct CheckedMove {
  const program::Move* stated;
  const TensorView* source;
  const TensorView* target;
  Bytes read;
  Bytes written;
};

// Adds a move to others unless it is empty. Requires that it stays inside its tensors.
void add_checked(const Operands& operands, const program::Move& move,
                 StepVector<CheckedMove>& moves) {
  require(operands,
          move.input() < operands.inputs.size() && move.output() < operands.outputs.size(),
          "a move names a tensor that the step does not have");
  const auto* shape = move.shape();
  const auto* from = move.input_strides();
  const auto* to = move.output_strides();
  require(operands,
          shape != nullptr && from != nullptr && to != nullptr && shape->size() <= kMaxAxes &&
              shape->size() == from->size() && shape->size() == to->size(),
          "a move has a shape without strides");
  if (is_empty(move)) { return; }
  const auto& source = *operands.inputs[move.input()];
  const auto& target = *operands.outputs[move.output()];
  moves.push_back({&move, &source, &target,
                   require_inside(operands, source, move.input_start(), *shape, *from),
                   require_inside(operands, target, move.output_start(), *shape, *to)});
  require_room(operands, target, *shape);
}

// Requires that no move reads what another, or itself, writes: the order of moves is free then.
void require_apart(const Operands& operands, const StepVector<Bytes>& read,
                   StepVector<Bytes> written) {
  std::sort(written.begin(), written.end(),
            [](const Bytes& a, const Bytes& b) { return a.begin < b.begin; });
  StepVector<Bytes> whole;
  for (const Bytes& each : written) {
    if (whole.empty() || whole.back().end < each.begin) {
      whole.push_back(each);
    } else {
      whole.back().end = std::max(whole.back().end, each.end);
    }
  }
  for (const Bytes& each : read) {
    const auto next =
        std::upper_bound(whole.begin(), whole.end(), each.begin,
                         [](const std::byte* begin, const Bytes& b) { return begin < b.end; });
    require(operands, next == whole.end() || each.end <= next->begin,
            "a move reads bytes that a move writes");
  }
}

bool share_bytes(const TensorView& a, const TensorView& b) {
  return a.data < b.data + b.size && b.data < a.data + a.size;
}

// The rows of one move: elements of each, how many, and elements from one written to the next.
struct Rows {
  std::uint64_t length = 1;
  std::uint64_t count = 1;
  std::uint64_t stride = 0;
};

// The rows that a move reads one after another; none if it does not consist of rows.
std::optional<Rows> rows_of(const program::Move& move) {
  Rows rows;
  std::uint64_t read = 1;
  for (flatbuffers::uoffset_t axis = move.shape()->size(); axis-- > 0;) {
    const std::uint64_t count = move.shape()->Get(axis);
    const auto from = static_cast<std::uint64_t>(move.input_strides()->Get(axis));
    const auto to = static_cast<std::uint64_t>(move.output_strides()->Get(axis));
    if (count == 1) { continue; }
    if (from != read || count == 0) { return std::nullopt; }
    read *= count;
    if (rows.stride == 0 && to == rows.length) {
      rows.length *= count;
    } else if (rows.stride == 0) {
      rows.stride = to;
      rows.count = count;
    } else if (to == rows.stride * rows.count) {
      rows.count *= count;
    } else {
      return std::nullopt;
    }
  }
  return rows;
}

// Returns the step that joins rows, if an input lies at the start of the output and is spread in
// place; null for any other copy. The moves must stay inside their tensors.
std::unique_ptr<Step> make_row_join(const Operands& operands, const program::Copy& attributes,
                                    const StepVector<CheckedMove>& moves) {
  const TensorView& target = *operands.outputs[0];
  const std::size_t element = element_size(target.type);
  const auto is_there = [&target](const TensorView* each) { return each->data == target.data; };
  const bool fills = attributes.fill() != nullptr && attributes.fill()->size() > 0;
  if (operands.outputs.size() != 1 || fills || count(attributes.moves()) < 2 ||
      std::count_if(operands.inputs.begin(), operands.inputs.end(), is_there) != 1) {
    return nullptr;
  }
  StepVector<RowJoinStep::Source> sources;
  std::optional<Rows> all;
  std::uint64_t begin = 0;
  bool is_spread = false;
  for (const CheckedMove& checked : moves) {
    const auto* move = checked.stated;
    const auto rows = rows_of(*move);
    const TensorView& source = *checked.source;
    if (!rows || move->input_start() != 0 || move->output_start() != begin ||
        (all && (rows->count != all->count || rows->stride != all->stride)) ||
        (is_there(&source) ? is_spread : share_bytes(source, target))) {
      return nullptr;
    }
    all = rows;
    is_spread = is_spread || is_there(&source);
    const RowJoinStep::Source found{move->input(), source.data,
                                    static_cast<std::size_t>(rows->length * element),
                                    static_cast<std::size_t>(begin * element)};
    sources.insert(is_there(&source) ? sources.begin() : sources.end(), found);
    begin += rows->length;
  }
  if (!is_spread) { return nullptr; }
  // One row that begins where it lies stays there.
  const bool is_one = all->count == 1;
  if (is_one ? sources[0].begin == 0 : all->stride != begin) { return nullptr; }
  return std::make_unique<RowJoinStep>(std::move(sources), target.data, all->count,
                                       begin * element);
}

std::unique_ptr<Step> make_copy(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Copy();
  require(operands, !operands.outputs.empty(), "it has no output");
  const auto type = operands.outputs[0]->type;
  const std::size_t element = element_size(type);
  for (const auto* list : {&operands.inputs, &operands.outputs}) {
    for (const auto* view : *list) {
      require(operands, view != nullptr && view->type == type, "its tensors differ in type");
    }
  }
  const bool by_rows = operands.in_bands || lie_apart(operands);
  const std::size_t num_moves = count(attributes.moves());
  StepVector<CheckedMove> moves;
  moves.reserve(num_moves);
  for (flatbuffers::uoffset_t i = 0; i < num_moves; ++i) {
    add_checked(operands, *attributes.moves()->Get(i), moves);
  }
  if (auto join = by_rows ? nullptr : make_row_join(operands, attributes, moves)) { return join; }
  StepVector<CopyStep::Part> parts;
  StepVector<Bytes> read;
  StepVector<Bytes> written;
  const std::size_t most = by_rows ? 0 : moves.size();
  parts.reserve(most);
  read.reserve(most);
  written.reserve(most + operands.outputs.size());
  for (std::size_t k = 0; k < most; ++k) {
    const CheckedMove& move = moves[k];
    const auto bytes = static_cast<std::int64_t>(element);
    const auto& shape = *move.stated->shape();
    const auto& from = *move.stated->input_strides();
    const auto& to = *move.stated->output_strides();
    StepVector<StridedCopy::Axis> axes;
    axes.reserve(shape.size());
    for (flatbuffers::uoffset_t i = 0; i < shape.size(); ++i) {
      axes.push_back(
          {static_cast<std::size_t>(shape.Get(i)), from.Get(i) * bytes, to.Get(i) * bytes});
    }
    const auto source_offset = static_cast<std::int64_t>(move.stated->input_start()) * bytes;
    const auto target_offset = static_cast<std::int64_t>(move.stated->output_start()) * bytes;
    if (move.source->data + source_offset == move.target->data + target_offset &&
        is_identity(axes)) {
      continue;  // the part lies where it belongs
    }
    read.push_back(move.read);
    written.push_back(move.written);
    parts.push_back({StridedCopy(std::move(axes), source_offset, target_offset, element),
                     move.stated->input(), move.source->data, move.target->data});
  }
  std::string fill;
  StepVector<const TensorView*> filled;
  if (attributes.fill() != nullptr && attributes.fill()->size() > 0) {
    require(operands, attributes.fill()->size() == element, "its fill is not one element");
    fill.assign(attributes.fill()->begin(), attributes.fill()->end());
    filled.assign(operands.outputs.begin(), operands.outputs.end());
    for (const auto* view : filled) { written.push_back({view->data, view->data + view->size}); }
  }
  require_apart(operands, read, std::move(written));
  if (by_rows) { return make_row_copy(operands, attributes, std::move(fill)); }
  return std::make_unique<CopyStep>(std::move(parts), std::move(filled), std::move(fill),
                                    operands.threads);
}

const Registration registered{program::Operator::Copy, make_copy};

}  // namespace

}  // namespace arenite
