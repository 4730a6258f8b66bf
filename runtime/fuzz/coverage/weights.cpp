// Coded weights, as libFuzzer makes them: two bytes of how many elements there are, and the code.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "coding/coded_weights.hpp"
#include "coding/symbol_decoder.hpp"
#include "errors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint16_t num_elements;
  if (size < sizeof num_elements) { return 0; }
  std::memcpy(&num_elements, data, sizeof num_elements);
  // A copy of its own size: who reads behind it is noticed.
  const std::size_t code_size = size - sizeof num_elements;
  const std::unique_ptr<std::byte[]> code(new std::byte[code_size]);
  std::memcpy(code.get(), data + sizeof num_elements, code_size);
  std::vector<float> elements(num_elements);
  try {
    arenite::SymbolDecoder decoder;
    const arenite::CodedWeights weights(code.get(), code_size, num_elements, "'w'", decoder);
    weights.decode();
    weights.visit([&](std::size_t at, float value) { elements.at(at) = value; });
  } catch (const arenite::ProgramError&) {}
  return 0;
}
