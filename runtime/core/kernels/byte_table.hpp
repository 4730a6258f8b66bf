// A function of bytes that a table states.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace arenite {

using ByteTable = std::array<std::uint8_t, 256>;

// Writes the entry of each byte. `target` may be `source`.
void look_up(const ByteTable& table, const std::uint8_t* source, std::uint8_t* target,
             std::size_t count);

}  // namespace arenite
