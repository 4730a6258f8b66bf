// Program files, as libFuzzer makes them: loaded, and run if they load.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "loading.hpp"

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Mostly the program changes and not the weights, which are most of a file and mean nothing: it
// keeps its length, so that weights stay where the head says.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                    unsigned seed) {
  static constexpr std::size_t kHeadSize = 32;
  std::uint64_t program_size = 0;
  if (size >= kHeadSize) { std::memcpy(&program_size, data + 16, sizeof program_size); }
  if (seed % 8 == 0 || program_size == 0 || program_size > size - kHeadSize) {
    return LLVMFuzzerMutate(data, size, most);
  }
  std::vector<std::uint8_t> program(data + kHeadSize, data + kHeadSize + program_size);
  const std::size_t left = LLVMFuzzerMutate(program.data(), program.size(), program.size());
  std::fill(program.begin() + static_cast<std::ptrdiff_t>(left), program.end(), std::uint8_t{0});
  std::copy(program.begin(), program.end(), data + kHeadSize);
  return size;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::runs(data, size);
  return 0;
}

}  // extern "C"
