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
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "errors.hpp"
#include "mapped_file.hpp"
#include "session.hpp"

namespace {

using arenite::MappedFile;

constexpr std::size_t kLargestArena = std::size_t{1} << 26;

// Bytes at the alignment that a file in memory must have.
class Bytes {
 public:
  explicit Bytes(const std::vector<char>& content) : size_(content.size()) {
    const std::size_t room =
        (size_ + MappedFile::kAlignment) / MappedFile::kAlignment * MappedFile::kAlignment;
    data_ = static_cast<std::byte*>(std::aligned_alloc(MappedFile::kAlignment, room));
    std::memcpy(data_, content.data(), size_);
  }
  ~Bytes() { std::free(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_;
  std::size_t size_;
};

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
    if (below(50) == 0) {
      file.resize(below(file.size()));
    }
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  std::mt19937_64 random_;
};

bool runs(const std::vector<char>& content) {
  const Bytes bytes(content);
  try {
    const auto file = std::make_shared<const MappedFile>(bytes.data(), bytes.size());
    for (const auto* memory : *file->program().memories()) {
      if (memory->size() > kLargestArena) {
        return false;
      }
    }
    arenite::Session session(file, {});
    for (std::size_t step = 0; step < session.num_steps(); ++step) {
      if (session.step(step) == nullptr) {
        return false;
      }
    }
    session.run(0, session.num_turns());
    return true;
  } catch (const arenite::ProgramError&) {
  } catch (const arenite::SystemError&) {
  }
  return false;
}

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
    if (valid.size() < 32 || !runs(valid)) {
      std::fprintf(stderr, "%s does not run as it is\n", argv[i]);
      return 1;
    }
    Damage damage(seed + static_cast<std::uint64_t>(i));
    for (std::uint64_t trial = 0; trial < count; ++trial) {
      std::vector<char> file = valid;
      damage.apply(file);
      num_run += runs(file) ? 1 : 0;
    }
  }
  std::printf("%llu files damaged, %zu ran, no fault\n",
              count * static_cast<unsigned long long>(argc - 3), num_run);
}
