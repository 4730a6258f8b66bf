// Names must be UTF-8, so that they can be shown and passed to Python.
#pragma once

#include <cstdint>
#include <string_view>

namespace arenite {

// Whether the bytes are UTF-8, as RFC 3629 has it.
inline bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    const std::size_t more = lead < 0x80                   ? 0
                             : lead >= 0xc2 && lead < 0xe0 ? 1
                             : lead >= 0xe0 && lead < 0xf0 ? 2
                             : lead >= 0xf0 && lead < 0xf5 ? 3
                                                           : text.size();
    if (more >= text.size() - i) { return false; }
    std::uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<std::uint8_t>(text[i + k]);
      if ((next & 0xc0u) != 0x80u) { return false; }
      point = point << 6 | (next & 0x3fu);
    }
    const bool is_overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
    if (is_overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) { return false; }
    i += more + 1;
  }
  return true;
}

}  // namespace arenite
