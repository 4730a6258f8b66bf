// Moves of elements between tensors, as moves between their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "program_generated.h"
#include "step_memory.hpp"

namespace arenite {

// A move whose every axis goes from row to row or stays within one, on either side. Rows are along
// axis 1 of one image; places and strides are in elements.
struct RowMove {
  // One that goes from row to row on one side at least.
  struct RowAxis {
    std::size_t length;
    std::int64_t source_step;  // rows
    std::int64_t target_step;
    std::int64_t source_stride;  // within a row
    std::int64_t target_stride;
  };
  struct Axis {
    std::size_t length;
    std::int64_t source;
    std::int64_t target;
  };
  // A part of one row that is moved to one row.
  struct Piece {
    std::int64_t source_row;
    std::int64_t target_row;
    std::int64_t source_place;
    std::int64_t target_place;
  };

  Piece first;
  StepVector<RowAxis> rows;
  StepVector<Axis> columns;  // of a piece

  // The move between tensors with rows of so many elements; nothing if it cannot be told apart by
  // rows. Nothing is known of the move.
  static std::optional<RowMove> of(const program::Move& move, std::size_t source_row,
                                   std::size_t target_row);

  StepVector<Piece> pieces() const;

  // The rows that it moves if each piece is the one before, a row further on both sides; else 0.
  std::size_t num_rows() const;
};

}  // namespace arenite
