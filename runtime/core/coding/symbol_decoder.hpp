// Huffman-coded symbols, decoded into memory that steps share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace arenite {

class SymbolDecoder {
 public:
  SymbolDecoder();
  ~SymbolDecoder();
  SymbolDecoder(const SymbolDecoder&) = delete;
  SymbolDecoder& operator=(const SymbolDecoder&) = delete;

  // Allocates a buffer of at least so many symbols, before any run.
  void reserve(std::size_t count);
  std::uint8_t* buffer() { return buffer_.data(); }

  // Frees the buffer and the decoder when nothing is left to decode.
  void release();

  // Heap bytes of the buffer and of the decoder.
  std::size_t held_bytes() const { return buffer_.capacity() + context_size(); }

  // Decodes `count` symbols, one a byte. Allocates nothing. Returns whether there are as many.
  bool decode(const std::byte* code, std::size_t size, std::uint8_t* to, std::size_t count);

 private:
  struct Context;

  std::size_t context_size() const;

  std::unique_ptr<Context> context_;
  std::vector<std::uint8_t> buffer_;
};

}  // namespace arenite
