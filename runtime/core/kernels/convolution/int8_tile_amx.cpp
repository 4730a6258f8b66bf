// Products of tiles for x86-64 with AMX: 32 pixels times 32 channels, in four tiles of sums.
//
// Two tiles hold 16 pixels of the source each, two a panel of weights each, whose quads are the
// rows that products take them by. So each of them is used twice once it is loaded.
#include <algorithm>
#include <cstring>

#include "kernels/convolution/amx.hpp"
#include "kernels/convolution/int8_tile.hpp"
#include "kernels/processor.hpp"

namespace arenite {

#if defined(ARENITE_HAVE_AMX)

namespace {

constexpr std::size_t kQuadBytes = kInt8Panel * kInt8Quad;
constexpr std::size_t kTilePixels = amx::kRows;
constexpr std::size_t kTileDepth = amx::kRowBytes;
constexpr std::size_t kTileQuads = kTileDepth / kInt8Quad;
static_assert(kInt8AmxPixels == 2 * kTilePixels && kQuadBytes == amx::kRowBytes &&
              kTileQuads == amx::kRows);

constexpr std::size_t kDepth = 1024;
constexpr std::size_t kStride = kDepth + kTileDepth;
static_assert(kInt8AmxPixels * kStride == kInt8AmxSlabBytes && kDepth % kTileDepth == 0);

// Where it can be expected to be quicker than products of vectors: a product of tiles takes as long
// for one pixel, channel or quad as for all that a tile has room for, and what the sums cost to
// load and to store does not fall with the depth. On a Xeon a prototype that took all that is
// convolved but depthwise was 3.5 times as quick as vectors for ResNet-50 and 1.4 times for
// MobileNet v2. Shallower, where a tile is never full, it is not possible: see `prepare`.
constexpr std::size_t kLeastDepth = kTileDepth;
#if defined(ARENITE_AMX_ANY_SIZE)  // for tests
constexpr std::size_t kLeastPixels = 1;
constexpr std::size_t kLeastOutputs = 1;
#else
constexpr std::size_t kLeastPixels = kTilePixels;
constexpr std::size_t kLeastOutputs = kInt8Panel;
#endif

// The tiles: of sums, by pixels and then by panels, of the source, and of weights.
constexpr int kSums = 0;
constexpr int kSource = 4;
constexpr int kWeights = 6;

// Bytes are copied as products of vectors take them, which every processor with tiles has.
void copy(const Int8Runs& runs, std::byte* to) {
#if defined(ARENITE_AMX_MODEL)
  for (std::size_t run = 0; run < runs.count; ++run) {
    for (std::size_t i = 0; i < runs.size; ++i) {
      to[run * runs.step_to + i] =
          static_cast<std::byte>(runs.data[run * runs.step + i] ^ runs.flip);
    }
  }
#else
  static const auto found = int8_tile_for_x86()->copy;
  found(runs, to);
#endif
}

void configure(std::size_t pixels) {
  const std::size_t upper = std::min(pixels, kTilePixels);
  amx::Sizes sizes;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::size_t rows = half == 0 ? upper : pixels - upper;
    for (const std::size_t tile : {kSums + 2 * half, kSums + 2 * half + 1, kSource + half}) {
      sizes.rows[tile] = static_cast<std::uint8_t>(rows);
      sizes.row_bytes[tile] = rows == 0 ? 0 : amx::kRowBytes;
    }
    sizes.rows[kWeights + half] = amx::kRows;
    sizes.row_bytes[kWeights + half] = amx::kRowBytes;
  }
  amx::configure(sizes);
}

// Of a depth that does not fill its last tile the rest is moved to that tile's end, behind zeros:
// its weights are the panel's last ones, some of which have been in the tile before.
ARENITE_FOR_AMX void prepare(const Int8Tile& tile) {
  const std::size_t rest = tile.quads % kTileQuads;
  if (rest == 0) {
    return;
  }
  std::byte* last = tile.slab + (tile.quads - rest) * kInt8Quad;
  for (std::size_t p = 0; p < tile.pixels; ++p) {
    std::byte kept[kTileDepth];  // with bytes that nobody reads behind the rest
    std::memcpy(kept, last, sizeof kept);
    std::memset(last, 0, sizeof kept);
    std::memcpy(last + (kTileQuads - rest) * kInt8Quad, kept, sizeof kept);
    last += kStride;
  }
}

// `HasLower`: of more pixels than a tile has. `IsWide`: of two panels.
template <bool HasLower, bool IsWide>
void multiply_tiles(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
                    const std::int32_t* start, std::int32_t* sums) {
  constexpr std::size_t kSumBytes = kInt8SumStride * sizeof(std::int32_t);
  constexpr std::size_t kHalf = kTilePixels * kInt8SumStride;
  // All pixels start alike.
  const std::int32_t* first = start != nullptr ? start : sums;
  const std::int32_t* second = start != nullptr ? start : sums + kHalf;
  const std::size_t step = start != nullptr ? 0 : kSumBytes;
  amx::load<kSums>(first, step);
  if constexpr (IsWide) {
    amx::load<kSums + 1>(first + kInt8Panel, step);
  }
  if constexpr (HasLower) {
    amx::load<kSums + 2>(second, step);
    if constexpr (IsWide) {
      amx::load<kSums + 3>(second + kInt8Panel, step);
    }
  }
  const std::byte* source = tile.slab;
  for (std::size_t done = 0; done < tile.quads; source += kTileDepth) {
    done = std::min(done + kTileQuads, tile.quads);
    // The last ones of the panel so far; there are as many, since the depth is not less.
    const std::int8_t* end = weights + done * kQuadBytes;
    const std::int8_t* from = end - kTileQuads * kQuadBytes;
    amx::load<kSource>(source, kStride);
    amx::load<kWeights>(from, kQuadBytes);
    amx::add_products<kSums, kSource, kWeights>();
    if constexpr (IsWide) {
      amx::load<kWeights + 1>(from + panel_bytes, kQuadBytes);
      amx::add_products<kSums + 1, kSource, kWeights + 1>();
    }
    if constexpr (HasLower) {
      amx::load<kSource + 1>(source + kTilePixels * kStride, kStride);
      amx::add_products<kSums + 2, kSource + 1, kWeights>();
      if constexpr (IsWide) {
        amx::add_products<kSums + 3, kSource + 1, kWeights + 1>();
      }
    }
  }
  amx::store<kSums>(sums, kSumBytes);
  if constexpr (IsWide) {
    amx::store<kSums + 1>(sums + kInt8Panel, kSumBytes);
  }
  if constexpr (HasLower) {
    amx::store<kSums + 2>(sums + kHalf, kSumBytes);
    if constexpr (IsWide) {
      amx::store<kSums + 3>(sums + kHalf + kInt8Panel, kSumBytes);
    }
  }
}

void multiply(const Int8Tile& tile, const std::int8_t* weights, std::size_t panel_bytes,
              std::size_t panels, const std::int32_t* start, std::int32_t* sums) {
  const bool has_lower = tile.pixels > kTilePixels;
  const auto made = panels == 2
                        ? (has_lower ? multiply_tiles<true, true> : multiply_tiles<false, true>)
                        : (has_lower ? multiply_tiles<true, false> : multiply_tiles<false, false>);
  made(tile, weights, panel_bytes, start, sums);
}

constexpr Int8TileKernel kAmx{Int8TileKernel::Form::unsigned_bytes,
                              kInt8AmxPixels,
                              kDepth / kInt8Quad,
                              kStride,
                              copy,
                              multiply,
                              configure,
                              prepare,
                              amx::release};

}  // namespace

const Int8TileKernel* int8_tile_for_amx(std::size_t depth, std::size_t outputs,
                                        std::size_t pixels) {
  const bool pays = depth >= kLeastDepth && outputs >= kLeastOutputs && pixels >= kLeastPixels;
  return pays && amx::are_allowed() ? &kAmx : nullptr;
}

#else

const Int8TileKernel* int8_tile_for_amx(std::size_t, std::size_t, std::size_t) { return nullptr; }

#endif

}  // namespace arenite
