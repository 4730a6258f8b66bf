#include "checksum.hpp"

#include <array>
#include <cstring>

namespace arenite {

namespace {

std::uint32_t read(const std::uint8_t* from) {
  std::uint32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Eight bytes at a time: entry [n][byte] is the remainder of a byte with n bytes of zeros behind
// it.
using Remainders = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Remainders remainders() {
  Remainders made{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) { value = value >> 1 ^ (value & 1 ? 0xEDB88320U : 0U); }
    made[0][byte] = value;
  }
  for (std::size_t n = 1; n < made.size(); ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      made[n][byte] = made[n - 1][byte] >> 8 ^ made[0][made[n - 1][byte] & 255];
    }
  }
  return made;
}

}  // namespace

std::uint32_t crc32(std::uint32_t before, const std::uint8_t* data, std::size_t size) {
  static constexpr Remainders kOf = remainders();
  std::uint32_t value = ~before;
  for (; size >= 8; data += 8, size -= 8) {
    const std::uint32_t low = value ^ read(data);
    const std::uint32_t high = read(data + 4);
    value = kOf[7][low & 255] ^ kOf[6][low >> 8 & 255] ^ kOf[5][low >> 16 & 255] ^
            kOf[4][low >> 24] ^ kOf[3][high & 255] ^ kOf[2][high >> 8 & 255] ^
            kOf[1][high >> 16 & 255] ^ kOf[0][high >> 24];
  }
  for (; size > 0; ++data, --size) { value = value >> 8 ^ kOf[0][(value ^ *data) & 255]; }
  return ~value;
}

}  // namespace arenite
