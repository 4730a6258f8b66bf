// Huffman-coded symbols, decoded into memory that steps share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace arenite {

class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Makes room for so many symbols, before any run.
  void reserve(std::size_t count);
  std::uint8_t* room() { return room_.data(); }

  // Decodes `count` symbols, one a byte. Allocates nothing. Returns whether there are as many.
  bool decode(const std::byte* code, std::size_t size, std::uint8_t* to, std::size_t count);

 private:
  struct Decoder;

  std::unique_ptr<Decoder> decoder_;
  std::vector<std::uint8_t> room_;
};

}  // namespace arenite
