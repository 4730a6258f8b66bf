// The states of a session as bytes: a head of 96 bytes, the rows of each dimension that grows, and
// each state as it is stored, of one whose rows are counted those that there are.
//
//   0   "ARENSTAT"
//   8   checksum of all bytes from 12 on, 32 bits
//   12  fingerprint of the types and shapes of the states, 32 bits
//   16  SHA-256 of the model file, 64 hexadecimal digits
//   80  bytes of all, 64 bits
//   88  number of states, 32 bits; of dimensions that grow, 32 bits
//   96  rows, 64 bits each
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "checking.hpp"
#include "checksum.hpp"
#include "program_session.hpp"
#include "resizing.hpp"
#include "session_threads.hpp"
#include "sizes.hpp"

namespace arenite {

namespace {

constexpr char kMagic[8] = {'A', 'R', 'E', 'N', 'S', 'T', 'A', 'T'};
constexpr std::size_t kChecksum = 8;
constexpr std::size_t kFingerprint = 12;
constexpr std::size_t kDigest = 16;
constexpr std::size_t kDigits = 64;
constexpr std::size_t kSize = 80;
constexpr std::size_t kStates = 88;
constexpr std::size_t kDimensions = 92;
constexpr std::size_t kHead = 96;

using States = flatbuffers::Vector<flatbuffers::Offset<program::State>>;

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

const std::uint8_t* bytes_of(const void* data) { return static_cast<const std::uint8_t*>(data); }

std::uint32_t checksum(const std::byte* from, std::size_t size) {
  return crc32(0, bytes_of(from) + kFingerprint, size - kFingerprint);
}

std::uint32_t fingerprint(const ProgramSession& session) {
  std::uint32_t found = 0;
  const auto* states = session.program().states();
  for (std::size_t i = 0; i < count(states); ++i) {
    const auto& state = *states->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto& view = session.tensor(static_cast<std::size_t>(state.tensor()));
    std::vector<std::int64_t> stated{static_cast<std::int64_t>(view.type), state.rows()};
    for (const std::size_t length : view.shape) {
      stated.push_back(static_cast<std::int64_t>(length));
    }
    found = crc32(found, bytes_of(stated.data()), stated.size() * sizeof stated[0]);
  }
  return found;
}

// The dimensions that grow, by their index.
std::vector<std::size_t> growing(const program::Program& program) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < count(program.dimensions()); ++i) {
    if (grows(*program.dimensions()->Get(static_cast<flatbuffers::uoffset_t>(i)))) {
      found.push_back(i);
    }
  }
  return found;
}

// Bytes of the rows of a state that are filled.
std::size_t filled(const program::State& state, const TensorView& view,
                   const std::vector<std::int64_t>& grown) {
  if (state.rows() < 0 || view.shape[0] == 0) { return view.size; }
  const auto rows = static_cast<std::size_t>(grown[static_cast<std::size_t>(state.rows())]);
  return view.size / view.shape[0] * std::min(rows, view.shape[0]);
}

std::size_t size_for(const ProgramSession& session, const std::vector<std::int64_t>& grown) {
  std::size_t size = kHead + 8 * growing(session.program()).size();
  const auto* states = session.program().states();
  for (std::size_t i = 0; i < count(states); ++i) {
    const auto& state = *states->Get(static_cast<flatbuffers::uoffset_t>(i));
    size += filled(state, session.tensor(static_cast<std::size_t>(state.tensor())), grown);
  }
  return size;
}

}  // namespace

std::size_t ProgramSession::saved_size() const { return size_for(*this, grown()); }

void ProgramSession::save(std::byte* to) const {
  const auto& digest = *program().digest();
  const auto dimensions = growing(program());
  std::memset(to, 0, kHead);
  std::memcpy(to, kMagic, sizeof kMagic);
  put(to + kFingerprint, fingerprint(*this));
  std::memcpy(to + kDigest, digest.c_str(), std::min<std::size_t>(digest.size(), kDigits));
  put<std::uint64_t>(to + kSize, saved_size());
  put(to + kStates, static_cast<std::uint32_t>(count(program().states())));
  put(to + kDimensions, static_cast<std::uint32_t>(dimensions.size()));
  std::byte* next = to + kHead;
  for (const std::size_t each : dimensions) {
    put(next, grown()[each]);
    next += 8;
  }
  for (std::size_t i = 0; i < count(program().states()); ++i) {
    const auto& state = *program().states()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto& view = tensors_[static_cast<std::size_t>(state.tensor())];
    const std::size_t size = filled(state, view, grown());
    if (size > 0) { std::memcpy(next, view.data, size); }
    next += size;
  }
  put(to + kChecksum, checksum(to, saved_size()));
}

void ProgramSession::load(const std::byte* from, std::size_t size) {
  threads_->require_here();
  if (size < kHead || std::memcmp(from, kMagic, sizeof kMagic) != 0) {
    throw StatesError("the bytes are no saved states");
  }
  if (get<std::uint64_t>(from + kSize) != size ||
      get<std::uint32_t>(from + kChecksum) != checksum(from, size)) {
    throw StatesError("the saved states are damaged");
  }
  std::string digest(reinterpret_cast<const char*>(from) + kDigest, kDigits);
  std::string own = program().digest()->str();
  own.resize(kDigits);
  const auto dimensions = growing(program());
  if (digest != own || get<std::uint32_t>(from + kFingerprint) != fingerprint(*this) ||
      get<std::uint32_t>(from + kStates) != count(program().states()) ||
      get<std::uint32_t>(from + kDimensions) != dimensions.size() ||
      size < kHead + 8 * dimensions.size()) {
    throw StatesError("the saved states are of another program");
  }
  auto rows = grown();
  const std::byte* next = from + kHead;
  for (const std::size_t each : dimensions) {
    const auto stated = get<std::int64_t>(next);
    next += 8;
    bool fits = stated >= 0;
    for (std::size_t i = 0; i < count(program().states()); ++i) {
      const auto& state = *program().states()->Get(static_cast<flatbuffers::uoffset_t>(i));
      const auto& shape = tensors_[static_cast<std::size_t>(state.tensor())].shape;
      fits = fits && (state.rows() != static_cast<std::int64_t>(each) ||
                      static_cast<std::uint64_t>(stated) <= shape[0]);
    }
    if (!fits) { throw StatesError("the saved states have " + std::to_string(stated) + " rows"); }
    rows[each] = stated;
  }
  if (size != size_for(*this, rows)) { throw StatesError("the saved states are damaged"); }
  reset();
  for (std::size_t i = 0; i < count(program().states()); ++i) {
    const auto& state = *program().states()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto& view = tensors_[static_cast<std::size_t>(state.tensor())];
    const std::size_t bytes = filled(state, view, rows);
    if (bytes > 0) { std::memcpy(view.data, next, bytes); }
    next += bytes;
  }
  if (resizing_ != nullptr) { resizing_->grown = rows; }
}

}  // namespace arenite
