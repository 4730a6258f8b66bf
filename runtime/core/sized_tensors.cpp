#include "sized_tensors.hpp"

#include <string>

#include "checking.hpp"
#include "validation.hpp"

namespace arenite {

std::vector<SizedPlace> sized_places(const program::Program& program,
                                     const std::vector<TensorView>& tensors,
                                     const std::vector<Room>& rooms) {
  std::vector<std::int64_t> expressions(tensors.size(), -1);
  std::vector<bool> varies(tensors.size());      // in size or place
  std::vector<bool> moves_rows(tensors.size());  // those behind the first
  for (std::size_t i = 0; i < count(program.axes()); ++i) {
    const auto& axis = *program.axes()->Get(static_cast<flatbuffers::uoffset_t>(i));
    varies[axis.tensor()] = true;
    moves_rows[axis.tensor()] = moves_rows[axis.tensor()] || axis.axis() != 1;
  }
  for (std::size_t i = 0; i < count(program.offsets()); ++i) {
    const auto& offset = *program.offsets()->Get(static_cast<flatbuffers::uoffset_t>(i));
    varies[offset.tensor()] = moves_rows[offset.tensor()] = true;
    expressions[offset.tensor()] = offset.expression();
  }
  std::vector<SizedPlace> found;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& view = tensors[i];
    if (!varies[i] || view.is_constant || view.rows != nullptr) { continue; }
    const bool holds_first = rooms[i].low <= view.offset;
    const bool holds_last = view.offset + view.size <= rooms[i].high;
    const bool is_moved = expressions[i] >= 0;
    if (holds_first && holds_last && !is_moved) { continue; }
    SizedPlace place{i, rooms[i], SizedPlace::Hold::room, view.offset, view.size, expressions[i]};
    if (!(holds_first && holds_last)) {
      if (moves_rows[i] && (is_moved ? !holds_last : !holds_first)) {
        refuse("tensor " +
               quoted(program.tensors()->Get(static_cast<flatbuffers::uoffset_t>(i))->name()) +
               " lies elsewhere at other sizes, where bytes are not live");
      }
      place.hold = is_moved ? SizedPlace::Hold::last : SizedPlace::Hold::first;
    }
    if (view.data != nullptr) { place.base = view.data - view.offset; }
    found.push_back(place);
  }
  return found;
}

void SizedPlace::place(TensorView& view, const program::Tensor& stated,
                       const std::vector<std::int64_t>& values) const {
  bool fits = true;
  if (hold != Hold::room) {
    for (std::size_t axis = 0; axis < view.rank(); ++axis) {
      fits = fits &&
             view.shape[axis] <= stated.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis));
    }
  }
  if (expression >= 0 && view.size == 0) {
    view.data = base + offset;
  } else if (expression >= 0) {
    const auto begin = static_cast<std::uint64_t>(values[static_cast<std::size_t>(expression)]);
    const bool is_inside = hold == Hold::last ? begin + view.size == offset + size
                                              : begin >= room.low && begin <= room.high &&
                                                    view.size <= room.high - begin;
    fits = fits && is_inside && begin % element_size(view.type) == 0;
    if (fits) { view.data = base + begin; }
  }
  if (!fits) {
    refuse("tensor " + quoted(stated.name()) + " lies at bytes that are not live at these sizes");
  }
}

void set_length(TensorView& view, std::size_t axis, std::int64_t length, const char* name) {
  if (length < 0 || static_cast<std::uint64_t>(length) > kMaxBytes) {
    refuse("axis " + std::to_string(axis) + " of tensor '" + name + "' has the length " +
           std::to_string(length) + " at these sizes");
  }
  view.shape[axis] = static_cast<std::size_t>(length);
}

void settle_size(TensorView& view, const program::Tensor& stated) {
  std::uint64_t bytes = element_size(view.type);
  std::uint64_t most = bytes;
  bool fits = true;
  for (std::size_t axis = 0; axis < view.rank(); ++axis) {
    const std::uint64_t highest = stated.shape()->Get(static_cast<flatbuffers::uoffset_t>(axis));
    most *= highest;  // which was checked
    fits = fits && !__builtin_mul_overflow(bytes, view.shape[axis], &bytes) &&
           (view.rows == nullptr || view.shape[axis] <= highest);
  }
  // A product of other lengths may overflow before one of them is 0: such sizes are refused too.
  if (!fits || bytes > most) {
    refuse("tensor " + quoted(stated.name()) + " has " + std::to_string(most) +
           " B, and needs more at these sizes");
  }
  view.size = static_cast<std::size_t>(bytes);
}

}  // namespace arenite
