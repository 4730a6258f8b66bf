// Damages valid program files at random, loads what comes out and runs it if it loads.
//
//     fuzz COUNT SEED FILE.arena...
//
// Run under the sanitizers: a fault is theirs to find. Files are refused with ProgramError or
// SystemError; anything else that is thrown is a fault too.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "loading.hpp"

namespace {

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  void apply(std::vector<char>& file) {
    std::uint64_t program_size;
    std::memcpy(&program_size, file.data() + 16, sizeof program_size);
    const std::size_t damaged = std::min<std::size_t>(file.size(), 32 + program_size);
    const std::size_t changes = std::size_t{1} << below(5);
    for (std::size_t i = 0; i < changes; ++i) {
      if (below(2) == 0) {
        file[below(damaged)] ^= static_cast<char>(1u << below(8));
      } else {
        static constexpr std::int32_t kTelling[] = {-1, 0, 1, INT32_MAX, INT32_MIN, 1 << 20, 4, 64};
        const std::size_t place = below(damaged / 4) * 4;
        std::memcpy(file.data() + place, &kTelling[below(8)], 4);
      }
    }
    if (below(50) == 0) { file.resize(below(file.size())); }
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::mt19937_64 random_;
};

std::vector<char> read(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: fuzz COUNT SEED FILE.arena...\n");
    return 2;
  }
  const auto count = std::strtoull(argv[1], nullptr, 10);
  const auto seed = std::strtoull(argv[2], nullptr, 10);
  std::size_t num_run = 0;
  for (int i = 3; i < argc; ++i) {
    const std::vector<char> valid = read(argv[i]);
    if (valid.size() < 32 || !fuzz::runs(valid.data(), valid.size())) {
      std::fprintf(stderr, "%s does not run as it is\n", argv[i]);
      return 1;
    }
    Damage damage(seed + static_cast<std::uint64_t>(i));
    for (std::uint64_t trial = 0; trial < count; ++trial) {
      std::vector<char> file = valid;
      damage.apply(file);
      num_run += fuzz::runs(file.data(), file.size()) ? 1 : 0;
    }
  }
  std::printf("%llu files damaged, %zu ran, no fault\n",
              count * static_cast<unsigned long long>(argc - 3), num_run);
}
