#include "row_copy.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "operand_checks.hpp"
#include "row_moves.hpp"
#include "steps/by_rows.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

// The address of a row; without a table rows are so many bytes apart.
template <typename Byte>
Byte* row_of(Byte* data, const std::uint64_t* rows, std::size_t row, std::size_t size) {
  return data + (rows == nullptr ? row * size : static_cast<std::size_t>(rows[row]));
}

// Copies row by row; rows may lie anywhere.
class RowCopyStep final : public Step {
 public:
  struct Move {
    StridedCopy copy;  // of a piece
    const std::byte* source;
    const std::uint64_t* source_rows;  // null: so many bytes apart
    std::size_t source_row;
    bool stays_in_place;  // where both sides begin at one address

    std::size_t held_bytes() const { return copy.held_bytes(); }
  };
  struct Piece {
    std::size_t move;
    std::size_t target_row;
    std::size_t source_row;
    std::size_t source_place;  // bytes
    std::size_t target_place;

    // Whether it is another one, a row further on both sides.
    bool follows(const Piece& other) const {
      return move == other.move && target_row == other.target_row + 1 &&
             source_row == other.source_row + 1 && source_place == other.source_place &&
             target_place == other.target_place;
    }
  };

  // Pieces of one row stand together. Those of so many rows, if more than one, are the given ones,
  // each row by row further.
  RowCopyStep(const TensorView& target, StepVector<Move> moves, StepVector<Piece> pieces,
              std::size_t num_alike, std::string fill)
      : target_(target.data),
        target_rows_(target.rows),
        num_rows_(target.shape[1]),
        row_size_(target.size / target.shape[1]),
        moves_(std::move(moves)),
        pieces_(std::move(pieces)),
        num_alike_(num_alike),
        fill_(std::move(fill)) {}

  void run() override { run_rows({0, num_rows_}); }
  bool makes_rows() const override { return true; }
  bool finds_rows(std::size_t /*input*/) const override { return true; }

  void run_rows(RowRange rows) override {
    const std::size_t end = rows.first + rows.count;
    for (std::size_t row = rows.first; row < end && !fill_.empty(); ++row) {
      fill_with(fill_, target(row), row_size_);
    }
    if (num_alike_ > 1) {
      const std::size_t top = pieces_.front().target_row;
      const std::size_t stop = std::min(end, top + num_alike_);
      for (std::size_t row = std::max(rows.first, top); row < stop; ++row) {
        for (const Piece& piece : pieces_) { move(piece, row - top); }
      }
      return;
    }
    const auto before = [](const Piece& piece, std::size_t row) { return piece.target_row < row; };
    auto piece = std::lower_bound(pieces_.begin(), pieces_.end(), rows.first, before);
    for (; piece != pieces_.end() && piece->target_row < end; ++piece) { move(*piece, 0); }
  }

  std::size_t held_bytes() const override { return held_bytes_of(moves_) + heap_bytes(pieces_); }

 private:
  // Moves a piece, so many rows further.
  void move(const Piece& piece, std::size_t further) const {
    const Move& move = moves_[piece.move];
    const std::size_t row = piece.source_row + further;
    const std::byte* from =
        row_of(move.source, move.source_rows, row, move.source_row) + piece.source_place;
    std::byte* to = target(piece.target_row + further) + piece.target_place;
    if (from != to || !move.stays_in_place) { move.copy.run(from, to, nullptr); }
  }

  std::byte* target(std::size_t row) const { return row_of(target_, target_rows_, row, row_size_); }

  std::byte* target_;
  const std::uint64_t* target_rows_;  // null: one after another
  std::size_t num_rows_;
  std::size_t row_size_;
  StepVector<Move> moves_;
  StepVector<Piece> pieces_;
  std::size_t num_alike_;
  std::string fill_;
};

// How many rows have the same pieces, each row by row further; 1 if not all have.
std::size_t num_alike(const StepVector<RowCopyStep::Piece>& pieces) {
  const auto is_later = [&](const auto& piece) {
    return piece.target_row != pieces.front().target_row;
  };
  const auto second = std::find_if(pieces.begin(), pieces.end(), is_later);
  const auto width = static_cast<std::size_t>(second - pieces.begin());
  if (second == pieces.end() || pieces.size() % width != 0) { return 1; }
  const auto follows = [](const auto& piece, const auto& other) { return piece.follows(other); };
  return std::equal(second, pieces.end(), pieces.begin(), follows) ? pieces.size() / width : 1;
}

}  // namespace

void fill_with(const std::string& element, std::byte* data, std::size_t size) {
  const bool is_even = std::all_of(element.begin(), element.end(),
                                   [&element](char byte) { return byte == element[0]; });
  if (is_even) {
    std::memset(data, element[0], size);
    return;
  }
  for (std::size_t at = 0; at < size; at += element.size()) {
    std::memcpy(data + at, element.data(), element.size());
  }
}

bool is_empty(const program::Move& move) {
  return std::find(move.shape()->begin(), move.shape()->end(), 0u) != move.shape()->end();
}

bool is_identity(const StepVector<StridedCopy::Axis>& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const StridedCopy::Axis& axis) {
    return axis.length == 1 || axis.source == axis.target;
  });
}

std::unique_ptr<Step> make_row_copy(const Operands& operands, const program::Copy& attributes,
                                    std::string fill) {
  const auto& target = *operands.outputs[0];
  const bool are_images = operands.outputs.size() == 1 && is_one_image(target) &&
                          std::all_of(operands.inputs.begin(), operands.inputs.end(),
                                      [](const TensorView* view) { return is_one_image(*view); });
  require(operands, are_images, "it runs by rows, but its operands are not one image each");
  const std::size_t element = element_size(target.type);
  const auto bytes = [element](std::int64_t count) {
    return count * static_cast<std::int64_t>(element);
  };
  const flatbuffers::uoffset_t count =
      attributes.moves() == nullptr ? 0 : attributes.moves()->size();
  StepVector<RowMove> found;
  StepVector<RowCopyStep::Move> moves;
  found.reserve(count);
  moves.reserve(count);
  const std::size_t target_row = target.size / target.shape[1];
  for (flatbuffers::uoffset_t i = 0; i < count; ++i) {
    const auto& move = *attributes.moves()->Get(i);
    if (is_empty(move)) { continue; }
    const auto& source = *operands.inputs[move.input()];
    const std::size_t source_row = source.size / source.shape[1];
    auto rows = RowMove::of(move, source_row / element, target_row / element);
    require(operands, rows.has_value(), "it runs by rows, but a move crosses rows");
    StepVector<StridedCopy::Axis> axes;
    axes.reserve(rows->columns.size());
    for (const auto& axis : rows->columns) {
      axes.push_back({axis.length, bytes(axis.source), bytes(axis.target)});
    }
    const bool stays = is_identity(axes);
    found.push_back(*std::move(rows));
    moves.push_back(
        {StridedCopy(std::move(axes), 0, 0, element), source.data, source.rows, source_row, stays});
  }
  const auto is_as_first = [&found](const RowMove& move) {
    return move.num_rows() == found.front().num_rows() &&
           move.first.target_row == found.front().first.target_row;
  };
  // Rows that all have the same pieces are told by the first.
  std::size_t alike = found.empty() ? 1 : found.front().num_rows();
  if (!std::all_of(found.begin(), found.end(), is_as_first)) { alike = 0; }
  const auto check = [&](const RowCopyStep::Piece& piece, std::size_t further) {
    const RowCopyStep::Move& move = moves[piece.move];
    const std::byte* from =
        row_of(move.source, move.source_rows, piece.source_row + further, move.source_row);
    const std::byte* to = row_of(target.data, target.rows, piece.target_row + further, target_row);
    const bool is_there =
        move.stays_in_place && from + piece.source_place == to + piece.target_place;
    require(operands, is_there || from + move.source_row <= to || to + target_row <= from,
            "a move is between rows that share bytes");
  };
  StepVector<RowCopyStep::Piece> pieces;
  const auto add = [&](const RowMove::Piece& each, std::size_t move) {
    pieces.push_back({move, static_cast<std::size_t>(each.target_row),
                      static_cast<std::size_t>(each.source_row),
                      static_cast<std::size_t>(bytes(each.source_place)),
                      static_cast<std::size_t>(bytes(each.target_place))});
    for (std::size_t k = 0; k < std::max<std::size_t>(alike, 1); ++k) { check(pieces.back(), k); }
  };
  pieces.reserve(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (alike > 0) {
      add(found[i].first, i);
    } else {
      for (const auto& each : found[i].pieces()) { add(each, i); }
    }
  }
  if (alike == 0) {
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
      return std::tie(a.target_row, a.move, a.target_place, a.source_row, a.source_place) <
             std::tie(b.target_row, b.move, b.target_place, b.source_row, b.source_place);
    });
    alike = num_alike(pieces);
    pieces.resize(pieces.size() / alike);
  }
  return std::make_unique<RowCopyStep>(target, std::move(moves), std::move(pieces), alike,
                                       std::move(fill));
}

}  // namespace arenite
