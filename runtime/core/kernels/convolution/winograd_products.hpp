// Products at a point of Winograd's tiles: of the channels of some tiles and panels of the filter.
#if defined(ARENITE_WINOGRAD_PRODUCTS) == defined(HWY_TARGET_TOGGLE)  // once for each kind
#ifdef ARENITE_WINOGRAD_PRODUCTS
#undef ARENITE_WINOGRAD_PRODUCTS
#else
#define ARENITE_WINOGRAD_PRODUCTS
#endif

#include "kernels/convolution/packed_tile.hpp"
#include "kernels/convolution/winograd_job.hpp"
#include "kernels/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace arenite {
namespace HWY_NAMESPACE {
namespace {

#if HWY_ARCH_ARM_A64
// Points lie as pixels that are packed for all panels, up to six tiles together.
constexpr std::size_t kMostTiles = kPackedPixels;

ARENITE_LANE std::size_t padded_depth(const WinogradJob& job) {
  return (job.source.channels + kPanel - 1) / kPanel * kPanel;
}

// Where a tile's points of some channels are kept.
struct PointPlace {
  std::size_t first;  // of the first channels
  std::size_t slots;  // tiles that are packed together

  ARENITE_LANE PointPlace(const WinogradJob& job, std::size_t count, std::size_t index) {
    const std::size_t group = index / kPackedPixels * kPackedPixels;
    const std::size_t rest = (count - group + 1) / 2 * 2;
    first = group * padded_depth(job) + index % kPackedPixels * 2;
    slots = rest < kPackedPixels ? rest : kPackedPixels;
  }

  ARENITE_LANE std::size_t of(std::size_t channel) const { return first + channel * slots; }
  // One point after another.
  template <std::size_t Count>
  ARENITE_LANE void keep(const Lanes (&values)[Count], float* to, std::size_t point_stride) const {
    float* behind = to + 2 * slots;
    keep(values, to, behind, point_stride);
  }
  // The same, and moves on.
  template <std::size_t Count>
  ARENITE_LANE static void keep(const Lanes (&values)[Count], float*& to, float*& behind,
                                std::size_t point_stride) {
    const std::size_t step = point_stride * sizeof(float);
#pragma GCC unroll 8
    for (const Lanes& value : values) {
      __asm__ volatile(
          "st1 {%2.d}[0], [%0], %3\n"
          "st1 {%2.d}[1], [%1], %3"
          : "+r"(to), "+r"(behind)
          : "w"(value.raw), "r"(step));
    }
  }
};

// One panel or two, which lie `panel_stride` apart. Sums of `depth` inputs are added up.
HWY_NOINLINE void multiply_panels(const WinogradJob& job, std::size_t num_tiles, const float* from,
                                  const float* filter, std::size_t panel_stride,
                                  std::size_t num_panels, std::size_t depth, float* to) {
  const std::size_t inputs = job.source.channels;
  float* results[kPackedPixels] = {};
  PackedTile tile{};
  tile.panel_stride = panel_stride;
  tile.channels = num_panels * kPanel;
  tile.result = results;
  tile.is_first = true;
  for (std::size_t done = 0; done < num_tiles; done += kPackedPixels) {
    const std::size_t rest = num_tiles - done;
    tile.num_pixels = rest < kPackedPixels ? rest : kPackedPixels;
    for (float*& result : results) {
      result = to;
      to += kProductColumns;
    }
    const PointPlace place(job, num_tiles, done);
    for (std::size_t first = 0; first < inputs; first += depth) {
      tile.depth = inputs - first < depth ? inputs - first : depth;
      tile.pixels = from + place.of(first);
      tile.filter = filter + first * kPanel;
      tile.adds_up = first > 0;
      multiply_packed(tile);
    }
  }
}
#else
// By chunks of kPanel channels, and there by tiles.
struct PointPlace {
  std::size_t chunk_stride;
  std::size_t index;

  ARENITE_LANE PointPlace(const WinogradJob& job, std::size_t, std::size_t tile)
      : chunk_stride(job.chunk_stride), index(tile) {}

  ARENITE_LANE std::size_t of(std::size_t channel) const {
    return channel / kPanel * chunk_stride + index * kPanel + channel % kPanel;
  }
  template <std::size_t Count>
  ARENITE_LANE void keep(const Lanes (&values)[Count], float* to, std::size_t point_stride) const {
#pragma GCC unroll 8
    for (std::size_t x = 0; x < Count; ++x) { store(values[x], to + x * point_stride); }
  }
};

// Sums that fit the registers: tiles at once, and vectors. Two vectors of AVX-512 are of two
// panels.
constexpr std::size_t kMostTiles = kLanes == 16 ? 14 : 6;
constexpr std::size_t kVectors = 2;
constexpr bool kTwoPanels = kVectors * kLanes > kPanel;

// Tiles lie kPanel floats apart, so that their places are known when this is compiled.
template <std::size_t Tiles, std::size_t Vectors>
HWY_NOINLINE void multiply_some(const WinogradJob& job, const float* from, const float* filter,
                                std::size_t vector_stride, float* to) {
  Lanes sums[Tiles][Vectors];
#pragma GCC unroll 16
  for (std::size_t tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Vectors; ++v) { sums[tile][v] = all_lanes(0.0f); }
  }
  for (std::size_t channel = 0; channel < job.source.channels; channel += kPanel) {
    const std::size_t rest = job.source.channels - channel;
    const std::size_t depth = rest < kPanel ? rest : kPanel;
    for (std::size_t k = 0; k < depth; ++k) {
      Lanes factors[Vectors];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < Vectors; ++v) { factors[v] = load(filter + v * vector_stride); }
      filter += kPanel;
#pragma GCC unroll 16
      for (std::size_t tile = 0; tile < Tiles; ++tile) {
        const Lanes value = all_lanes(from[tile * kPanel + k]);
#pragma GCC unroll 4
        for (std::size_t v = 0; v < Vectors; ++v) {
          sums[tile][v] = multiply_add(value, factors[v], sums[tile][v]);
        }
      }
    }
    from += job.chunk_stride;
  }
#pragma GCC unroll 16
  for (std::size_t tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Vectors; ++v) {
      store(sums[tile][v], to + tile * kProductColumns + v * kLanes);
    }
  }
}

// As many tiles at once as registers hold. They come in pairs: there is room for one more.
template <std::size_t Vectors>
HWY_NOINLINE void multiply_tiles(const WinogradJob& job, std::size_t count, const float* from,
                                 const float* filter, std::size_t vector_stride, float* to) {
  for (std::size_t blocks = (count + kMostTiles - 1) / kMostTiles; blocks > 0; --blocks) {
    const std::size_t tiles = (count + 2 * blocks - 1) / (2 * blocks) * 2;
    constexpr bool kMany = kMostTiles > 6;
    switch (tiles) {
      case 2: multiply_some<2, Vectors>(job, from, filter, vector_stride, to); break;
      case 4: multiply_some<4, Vectors>(job, from, filter, vector_stride, to); break;
      case 6: multiply_some<6, Vectors>(job, from, filter, vector_stride, to); break;
      case 8: multiply_some<kMany ? 8 : 6, Vectors>(job, from, filter, vector_stride, to); break;
      case 10: multiply_some<kMany ? 10 : 6, Vectors>(job, from, filter, vector_stride, to); break;
      case 12: multiply_some<kMany ? 12 : 6, Vectors>(job, from, filter, vector_stride, to); break;
      default: multiply_some<kMostTiles, Vectors>(job, from, filter, vector_stride, to);
    }
    from += tiles * kPanel;
    to += tiles * kProductColumns;
    count -= tiles < count ? tiles : count;
  }
}

// One panel or two, which lie `panel_stride` apart. Sums are of all inputs.
HWY_NOINLINE void multiply_panels(const WinogradJob& job, std::size_t num_tiles, const float* from,
                                  const float* filter, std::size_t panel_stride,
                                  std::size_t num_panels, std::size_t /*depth*/, float* to) {
  if (kTwoPanels && num_panels == 2) {
    multiply_tiles<kVectors>(job, num_tiles, from, filter, panel_stride, to);
    return;
  }
  constexpr std::size_t kOfPanel = kTwoPanels ? 1 : kVectors;
  for (std::size_t panel = 0; panel < num_panels; ++panel) {
    for (std::size_t column = 0; column < kPanel; column += kOfPanel * kLanes) {
      multiply_tiles<kOfPanel>(job, num_tiles, from, filter + panel * panel_stride + column, kLanes,
                               to + panel * kPanel + column);
    }
  }
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace arenite
HWY_AFTER_NAMESPACE();

#endif  // once for each kind
