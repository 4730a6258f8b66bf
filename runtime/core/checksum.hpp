// Checksums of files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arenite {

// CRC-32 of bytes, as in zlib, continued from those before; 0 of none.
std::uint32_t crc32(std::uint32_t before, const std::uint8_t* data, std::size_t size);

}  // namespace arenite
