#include "row_join.hpp"

#include <cstring>
#include <utility>

namespace arenite {

RowJoin::RowJoin(std::vector<Source> sources, std::byte* target, std::size_t num_rows,
                 std::size_t row)
    : sources_(std::move(sources)), target_(target), num_rows_(num_rows), row_(row) {}

void RowJoin::run() const {
  for (std::size_t row = num_rows_; row-- > 0;) {
    std::byte* const target = target_ + row * row_;
    // The source that overlaps the target comes first: its row may reach into the parts of the
    // others.
    for (const auto& source : sources_) {
      std::memmove(target + source.begin, source.data + row * source.row, source.row);
    }
  }
}

}  // namespace arenite
