#include "sized_tensors.hpp"

#include <map>
#include <string>
#include <utility>

#include "checking.hpp"
#include "validation.hpp"

namespace arenite {

std::vector<SizedLengths> sized_lengths(const program::Program& program) {
  std::vector<SizedLengths> found;
  std::map<std::uint32_t, std::size_t> places;
  for (flatbuffers::uoffset_t i = 0; i < count(program.axes()); ++i) {
    const auto& axis = *program.axes()->Get(i);
    const auto [at, is_new] = places.emplace(axis.tensor(), found.size());
    if (is_new) {
      const auto& stated = *program.tensors()->Get(axis.tensor());
      std::uint64_t most = element_size(stated.type());
      for (const auto length : *stated.shape()) { most *= length; }
      found.push_back({axis.tensor(), most, {}});
    }
    found[at->second].axes.push_back({axis.axis(), axis.expression()});
  }
  return found;
}

bool SizedLengths::set(TensorView& view, const program::Tensor& stated,
                       const std::vector<std::int64_t>& values) const {
  bool is_other = false;
  for (const auto& [axis, expression] : axes) {
    const std::int64_t length = values[expression];
    const bool is_row = view.rows != nullptr;
    if (length < 0 ||
        static_cast<std::uint64_t>(length) > (is_row ? stated.shape()->Get(axis) : kMaxBytes)) {
      refuse("axis " + std::to_string(axis) + " of tensor " + quoted(stated.name()) +
             " has the length " + std::to_string(length) + " at these sizes");
    }
    is_other = std::exchange(view.shape[axis], static_cast<std::size_t>(length)) !=
                   static_cast<std::size_t>(length) ||
               is_other;
  }
  if (!is_other) { return false; }
  std::uint64_t bytes = element_size(view.type);
  bool fits = true;
  for (const std::size_t length : view.shape) {
    fits = fits && !__builtin_mul_overflow(bytes, length, &bytes);
  }
  // A product of other lengths may overflow before one of them is 0: such sizes are refused too.
  if (!fits || bytes > most) {
    refuse("tensor " + quoted(stated.name()) + " has " + std::to_string(most) +
           " B, and needs more at these sizes");
  }
  view.size = static_cast<std::size_t>(bytes);
  return true;
}

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

}  // namespace arenite
