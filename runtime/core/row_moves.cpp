#include "row_moves.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace arenite {

namespace {

// What is beyond this is no move of a tensor that fits a memory.
constexpr std::int64_t kLimit = std::int64_t{1} << 46;
constexpr std::size_t kMaxPieces = std::size_t{1} << 20;
constexpr std::size_t kMaxAxes = 16;

bool is_small(std::int64_t number) { return number > -kLimit && number < kLimit; }

// Elements of an axis until it leaves a row, if it goes on in the next one; else all of them.
std::int64_t within_row(std::int64_t length, std::int64_t stride, std::int64_t row) {
  const bool runs_on = stride > 0 && stride < row && row < stride * length && row % stride == 0;
  return runs_on ? std::gcd(length, row / stride) : length;
}

// The places that a move touches within a row, from the lowest to the highest.
struct Extent {
  std::int64_t lowest;
  std::int64_t highest;

  void widen(std::int64_t by) { (by < 0 ? lowest : highest) += by; }
  bool is_inside(std::int64_t row) const { return lowest >= 0 && highest < row; }
};

}  // namespace

std::optional<RowMove> RowMove::of(const program::Move& move, std::size_t source_row,
                                   std::size_t target_row) {
  const auto source_length = static_cast<std::int64_t>(source_row);
  const auto target_length = static_cast<std::int64_t>(target_row);
  const auto* shape = move.shape();
  if (shape == nullptr || move.input_strides() == nullptr || move.output_strides() == nullptr ||
      shape->size() > kMaxAxes || shape->size() != move.input_strides()->size() ||
      shape->size() != move.output_strides()->size() || source_length <= 0 || target_length <= 0 ||
      move.input_start() >= static_cast<std::uint64_t>(kLimit) ||
      move.output_start() >= static_cast<std::uint64_t>(kLimit)) {
    return std::nullopt;
  }
  const auto source_start = static_cast<std::int64_t>(move.input_start());
  const auto target_start = static_cast<std::int64_t>(move.output_start());
  RowMove found{{source_start / source_length, target_start / target_length,
                 source_start % source_length, target_start % target_length},
                {},
                {}};
  Extent source{found.first.source_place, found.first.source_place};
  Extent target{found.first.target_place, found.first.target_place};
  const auto add = [&](std::int64_t length, std::int64_t from, std::int64_t to) {
    if (length == 1) { return; }
    RowAxis axis{static_cast<std::size_t>(length), 0, 0, 0, 0};
    (from % source_length == 0 ? axis.source_step : axis.source_stride) =
        from % source_length == 0 ? from / source_length : from;
    (to % target_length == 0 ? axis.target_step : axis.target_stride) =
        to % target_length == 0 ? to / target_length : to;
    source.widen(axis.source_stride * (length - 1));
    target.widen(axis.target_stride * (length - 1));
    if (axis.source_step != 0 || axis.target_step != 0) {
      found.rows.push_back(axis);
    } else {
      found.columns.push_back({axis.length, axis.source_stride, axis.target_stride});
    }
  };
  for (flatbuffers::uoffset_t i = 0; i < shape->size(); ++i) {
    const std::int64_t from = move.input_strides()->Get(i);
    const std::int64_t to = move.output_strides()->Get(i);
    if (shape->Get(i) == 0 || shape->Get(i) >= static_cast<std::uint64_t>(kLimit) ||
        !is_small(from) || !is_small(to)) {
      return std::nullopt;
    }
    const auto length = static_cast<std::int64_t>(shape->Get(i));
    if (length == 1) { continue; }
    if (std::max(std::abs(from), std::abs(to)) > kLimit / length) { return std::nullopt; }
    const std::int64_t inner =
        std::gcd(within_row(length, from, source_length), within_row(length, to, target_length));
    add(length / inner, from * inner, to * inner);
    add(inner, from, to);
  }
  if (!source.is_inside(source_length) || !target.is_inside(target_length)) { return std::nullopt; }
  std::size_t pieces = 1;
  for (const RowAxis& axis : found.rows) {
    if (axis.length > kMaxPieces / pieces) { return std::nullopt; }
    pieces *= axis.length;
  }
  return found;
}

std::size_t RowMove::num_rows() const {
  if (rows.empty()) { return 1; }
  const RowAxis& axis = rows.front();
  const bool is_row_by_row = rows.size() == 1 && axis.source_step == 1 && axis.target_step == 1 &&
                             axis.source_stride == 0 && axis.target_stride == 0;
  return is_row_by_row ? axis.length : 0;
}

StepVector<RowMove::Piece> RowMove::pieces() const {
  std::size_t count = 1;
  for (const RowAxis& axis : rows) { count *= axis.length; }
  StepVector<Piece> found;
  found.reserve(count);
  found.push_back(first);
  for (std::size_t i = rows.size(); i-- > 0;) {
    const RowAxis& axis = rows[i];
    const std::size_t inner = found.size();
    for (std::size_t k = inner; k < inner * axis.length; ++k) {
      Piece next = found[k - inner];
      next.source_row += axis.source_step;
      next.target_row += axis.target_step;
      next.source_place += axis.source_stride;
      next.target_place += axis.target_stride;
      found.push_back(next);
    }
  }
  return found;
}

}  // namespace arenite
