#include "kernels/convolution/strassen.hpp"

#ifdef ARENITE_ARM64
#include <arm_neon.h>

#include <algorithm>
#include <limits>

#include "kernels/convolution/pixel_rows.hpp"
#include "kernels/convolution/windows.hpp"
#include "kernels/parallel.hpp"
#endif

namespace arenite {

#ifdef ARENITE_ARM64
namespace {

// Pixels from which on sums of the filter are worth it.
constexpr std::size_t kFewestPixels = 32;

// Of a half of the depth: most that is packed together.
constexpr std::size_t kHalfDepth = kMostStrassenDepth / 2;

// Pairs of panels that products are kept of.
constexpr std::size_t kPairs = 8;
constexpr std::size_t kColumns = kPairs * kPanel;

// Sums of the filter that stay in the second cache, and those that lie on the stack where working
// memory has no room for as many.
constexpr std::size_t kMostBytes = 5 << 19;
constexpr std::size_t kStackBytes = std::size_t{1} << 18;

constexpr std::size_t kProducts = 7;
constexpr std::size_t kSums = 4;  // of quarters of the filter

// What is made from two pixels, and of which quarter or sum of the filter it is multiplied.
// Products are numbered as in the source, from 0 on.
enum Product { k11, k12, kS4, k22, kS1, kS2, kS3 };

// A thread's.
struct Buffers {
  alignas(64) float copies[2 * kPackedPixels * kTileStride];
  alignas(64) float packed[kProducts * packed_pixels_size(kHalfDepth)];
  alignas(64) float products[kProducts * kPackedPixels * kColumns];
  float unread[kColumns] = {};  // of a pixel that does not exist
};

// Several vectors, which one instruction loads or stores before the place moves on. Compilers add
// to places apart.
template <std::size_t Count>
struct Vectors;
template <>
struct Vectors<2> {
  float32x4x2_t of;
  ARENITE_INLINE explicit Vectors(const float*& from) {
    __asm__("ld1 {%S0.4s, %T0.4s}, [%1], #32"
            : "=w"(of), "+r"(from)
            : "m"(*reinterpret_cast<const float (*)[8]>(from)));
  }
  Vectors() = default;
  ARENITE_INLINE void store(float*& to) const {
    __asm__("st1 {%S2.4s, %T2.4s}, [%1], #32"
            : "=m"(*reinterpret_cast<float (*)[8]>(to)), "+r"(to)
            : "w"(of));
  }
};
template <>
struct Vectors<4> {
  float32x4x4_t of;
  ARENITE_INLINE explicit Vectors(const float*& from) {
    __asm__("ld1 {%S0.4s - %V0.4s}, [%1], #64"
            : "=w"(of), "+r"(from)
            : "m"(*reinterpret_cast<const float (*)[16]>(from)));
  }
  Vectors() = default;
  ARENITE_INLINE void store(float*& to) const {
    __asm__("st1 {%S2.4s - %V2.4s}, [%1], #64"
            : "=m"(*reinterpret_cast<float (*)[16]>(to)), "+r"(to)
            : "w"(of));
  }
};

template <std::size_t Count>
ARENITE_INLINE Vectors<Count> operator+(const Vectors<Count>& a, const Vectors<Count>& b) {
  Vectors<Count> sum;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < Count; ++i) { sum.of.val[i] = vaddq_f32(a.of.val[i], b.of.val[i]); }
  return sum;
}
template <std::size_t Count>
ARENITE_INLINE Vectors<Count> operator-(const Vectors<Count>& a, const Vectors<Count>& b) {
  Vectors<Count> rest;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < Count; ++i) { rest.of.val[i] = vsubq_f32(a.of.val[i], b.of.val[i]); }
  return rest;
}

// Four steps of six pairs of pixels: quarters are loaded, packed and added.
#define EACH(X, a, b, c, d, e, f) X(24, a) X(25, b) X(26, c) X(27, d) X(28, e) X(29, f)
#define LOAD(v, x) "ldr q" #v ", [x" #x ", %[here]];"
#define LOAD_BEHIND(v, x) "ldr q" #v ", [x" #x ", %[behind]];"
#define LOAD11 EACH(LOAD, 9, 10, 11, 12, 13, 14)
#define LOAD12 EACH(LOAD_BEHIND, 9, 10, 11, 12, 13, 14) "add %[behind], %[behind], #16;"
#define LOAD21 EACH(LOAD, 15, 16, 17, 19, 20, 21)
#define LOAD22 EACH(LOAD_BEHIND, 15, 16, 17, 19, 20, 21)
// As zip1 and zip2, which take the Cortex-A72 longer.
#define ZIP(low, high, a, b) \
  "trn1 v" #low ".2d, v" #a ".2d, v" #b ".2d;trn2 v" #high ".2d, v" #a ".2d, v" #b ".2d;"
#define PACK(a, b, c, d, e, f) ZIP(a, d, 24, 25) ZIP(b, e, 26, 27) ZIP(c, f, 28, 29)
#define ADD(to, a, b) "fadd v" #to ".4s, v" #a ".4s, v" #b ".4s;"
#define SUB(to, a, b) "fsub v" #to ".4s, v" #a ".4s, v" #b ".4s;"
#define THREE(X, a, b, c, d, e, f, g, h, i) X(a, d, g) X(b, e, h) X(c, f, i)
#define MAKE_S1 THREE(ADD, 0, 1, 2, 0, 1, 2, 6, 7, 8) THREE(ADD, 3, 4, 5, 3, 4, 5, 9, 10, 11)
#define MAKE_S2 THREE(SUB, 0, 1, 2, 0, 1, 2, 18, 19, 20) THREE(SUB, 3, 4, 5, 3, 4, 5, 21, 22, 23)
#define MAKE_S3 \
  THREE(SUB, 6, 7, 8, 18, 19, 20, 6, 7, 8) THREE(SUB, 9, 10, 11, 21, 22, 23, 9, 10, 11)
#define MAKE_S4 \
  THREE(SUB, 12, 13, 14, 12, 13, 14, 0, 1, 2) THREE(SUB, 15, 16, 17, 15, 16, 17, 3, 4, 5)
#define STORE(a, c, x) "st1 {v" #a ".4s-v" #c ".4s}, [x" #x "], #48;"
// Stores wait for what they store and for each other's place: others are between. a22 is in v0 to
// v5, a21 in v6 to v11, a12 in v12 to v17 and a11 in v18 to v23; sums replace them.
#define MAKE_A22 LOAD22 PACK(0, 1, 2, 3, 4, 5)
#define MAKE_A21 LOAD21 STORE(0, 2, 25) PACK(6, 7, 8, 9, 10, 11) STORE(3, 5, 25)
#define MAKE_A12 LOAD12 MAKE_S1 PACK(12, 13, 14, 15, 16, 17) STORE(0, 2, 26)
#define MAKE_A11 LOAD11 STORE(3, 5, 26) PACK(18, 19, 20, 21, 22, 23) STORE(12, 14, 23)
#define MAKE_SUMS MAKE_S3 STORE(15, 17, 23) MAKE_S2 STORE(18, 20, 22) STORE(6, 8, 28) MAKE_S4
#define STORE_SUMS STORE(0, 2, 27) STORE(21, 23, 22) STORE(9, 11, 28) STORE(12, 14, 24)
#define STORE_LAST STORE(3, 5, 27) "cmp %[here], %[end];" STORE(15, 17, 24)

// Compilers have too few registers for this loop.
[[gnu::noinline]] void pack_six_factors(const float* const* first, const float* const* second,
                                        std::size_t half, std::size_t depth, float* const* to) {
  std::size_t here = 0;  // bytes
  std::size_t behind = half * sizeof(float);
  __asm__ volatile(
      "ldp x9, x10, [%[first]];ldp x11, x12, [%[first], #16];ldp x13, x14, [%[first], #32];"
      "ldp x15, x16, [%[second]];ldr x17, [%[second], #16];ldr x19, [%[second], #24];"
      "ldp x20, x21, [%[second], #32];"
      "ldp x22, x23, [%[to]];ldp x24, x25, [%[to], #16];ldp x26, x27, [%[to], #32];"
      "ldr x28, [%[to], #48];"
      "1:;" MAKE_A22 MAKE_A21 MAKE_A12 MAKE_A11
      "add %[here], %[here], #16;" MAKE_SUMS STORE_SUMS STORE_LAST "b.ne 1b"
      : [here] "+&r"(here), [behind] "+&r"(behind)
      : [first] "r"(first), [second] "r"(second), [to] "r"(to), [end] "r"(depth * sizeof(float))
      : "memory", "cc", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x19", "x20",
        "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v0", "v1", "v2", "v3", "v4", "v5",
        "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18",
        "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29");
}

// Packs the factors of pairs of pixels for multiply_packed, one behind the other, from some steps
// of the depth and those that lie `half` floats behind.
void pack_factors(const float* (&pixels)[2][kPackedPixels], std::size_t num_pairs, std::size_t half,
                  std::size_t depth, float* packed) {
  const std::size_t num_packed = round_up(num_pairs, 2);
  const std::size_t size = num_packed * depth;
  float* to[kProducts];
  for (std::size_t j = 0; j < kProducts; ++j) { to[j] = packed + j * size; }
  const float* behind[2][kPackedPixels];
  for (std::size_t i = 0; i < 2; ++i) {
    if (num_pairs < num_packed) { pixels[i][num_pairs] = pixels[i][num_pairs - 1]; }
    for (std::size_t j = 0; j < num_packed; ++j) { behind[i][j] = pixels[i][j] + half; }
  }
  if (num_packed == kPackedPixels) {
    pack_six_factors(pixels[0], pixels[1], half, depth, to);
    return;
  }
  pack_pixels(pixels[0], num_packed, depth, to[k11]);
  pack_pixels(behind[0], num_packed, depth, to[k12]);
  pack_pixels(pixels[1], num_packed, depth, to[kS1]);
  pack_pixels(behind[1], num_packed, depth, to[k22]);
  const float *f11 = to[k11], *f12 = to[k12], *f21 = to[kS1], *f22 = to[k22];
  for (const float* const end = f11 + size; f11 < end;) {
    const Vectors<4> a11(f11);
    const Vectors<4> a21(f21);
    (a11 - a21).store(to[kS3]);
    const auto s1 = a21 + Vectors<4>(f22);
    s1.store(to[kS1]);
    const auto s2 = s1 - a11;
    s2.store(to[kS2]);
    (Vectors<4>(f12) - s2).store(to[kS4]);
  }
}

// Where a pair of pixels has its results, or what is added to them: by pixels and halves of
// outputs.
struct Places {
  float* results[4];
  const float* addends[4];
};

// Makes the results of some pairs of pixels in both halves of the outputs from their products.
template <bool IsFirst, bool HasAddend, bool Clamps>
void leave(const float* products, const Places* places, std::size_t num_pairs, std::size_t columns,
           float min, float max) {
  const float32x4_t least = vdupq_n_f32(min);
  const float32x4_t most = vdupq_n_f32(max);
  for (std::size_t pair = 0; pair < num_pairs; ++pair) {
    const float* from[kProducts];
    for (std::size_t j = 0; j < kProducts; ++j) {
      from[j] = products + (j * kPackedPixels + pair) * kColumns;
    }
    Places at = places[pair];
    for (const float* const end = from[k11] + columns; from[k11] < end;) {
      const Vectors<2> p1(from[k11]);
      const Vectors<2> p5(from[kS1]);
      const auto u2 = p1 + Vectors<2>(from[kS2]);
      const auto u3 = u2 + Vectors<2>(from[kS3]);
      const auto keep = [&](Vectors<2> sum, std::size_t i) {
        if constexpr (!IsFirst) {
          const float* made = at.results[i];
          sum = sum + Vectors<2>(made);
        }
        if constexpr (HasAddend) { sum = sum + Vectors<2>(at.addends[i]); }
        if constexpr (Clamps) {
          for (float32x4_t& each : sum.of.val) { each = vminq_f32(vmaxq_f32(each, least), most); }
        }
        sum.store(at.results[i]);
      };
      keep(p1 + Vectors<2>(from[k12]), 0);
      keep(u2 + p5 + Vectors<2>(from[kS4]), 1);
      keep(u3 + Vectors<2>(from[k22]), 2);
      keep(u3 + p5, 3);
    }
  }
}

constexpr decltype(&leave<true, true, true>) kLeave[2][2][2] = {
    {{leave<false, false, false>, leave<false, false, true>},
     {leave<false, true, false>, leave<false, true, true>}},
    {{leave<true, false, false>, leave<true, false, true>},
     {leave<true, true, false>, leave<true, true, true>}},
};

// Sums of quarters of the filter for a pair of panels, of so much of half the depth. The last one
// is negative.
void make_sums(const float* first_panel, const float* second_panel, std::size_t half_depth,
               std::size_t count, float* sums) {
  const std::size_t size = count * kPanel;
  const float *f11 = first_panel, *f21 = f11 + half_depth * kPanel;
  const float *f12 = second_panel, *f22 = f12 + half_depth * kPanel;
  float* to[kSums];
  for (std::size_t i = 0; i < kSums; ++i) { to[i] = sums + i * size; }
  for (const float* const end = f11 + size; f11 < end;) {
    const Vectors<4> b12(f12);
    const Vectors<4> b22(f22);
    (b22 - b12).store(to[2]);
    const auto t1 = b12 - Vectors<4>(f11);
    t1.store(to[0]);
    const auto t2 = b22 - t1;
    t2.store(to[1]);
    (Vectors<4>(f21) - t2).store(to[3]);
  }
}

class Run {
 public:
  Run(const StrassenConvolution& convolution, const Image<const float>& source,
      const Image<float>& result, std::size_t num_threads)
      : convolution_(convolution),
        source_(source),
        result_(result),
        depth_(convolution.window.kernel[0] * convolution.window.kernel[1] * source.channels),
        some_half_(std::min(convolution.depth, depth_) / 2),
        num_pixels_(result.rows * result.columns),
        num_pairs_(divide_up(num_pixels_, 2)),
        num_groups_(divide_up(num_pairs_, kPackedPixels)),
        panel_size_(depth_ * kPanel),
        half_panels_(result.channels / kPanel / 2),
        is_pointwise_(depth_ == source.channels && !convolution.window.has_padding()),
        windows_(convolution.window, source, source.channels, result.columns) {
    const std::size_t bytes = std::min(kMostBytes, convolution.scratch_bytes);
    const std::size_t pair = strassen_scratch(2 * some_half_);
    is_on_stack_ = bytes < std::min(kStackBytes, half_panels_ * pair);
    held_ = std::min((is_on_stack_ ? kStackBytes : bytes) / pair, half_panels_);
    const std::size_t wanted = num_threads == 1 ? 1 : num_threads * kPartsPerThread;
    splits_ = std::clamp<std::size_t>(divide_up(wanted, num_groups_), 1, divide_up(held_, 2));
  }

  void run(std::size_t num_threads, pthreadpool_t threads) {
    if (is_on_stack_) {
      alignas(64) float sums[kStackBytes / sizeof(float)];
      run(sums, num_threads, threads);
    } else {
      run(static_cast<float*>(convolution_.scratch), num_threads, threads);
    }
  }

  std::size_t num_parts() const { return num_groups_ * splits_; }

  void run(std::size_t part) const {
    Buffers buffers;
    const Range pairs = split(num_pairs_, num_groups_, part / splits_);
    const Range panels = split(count_, splits_, part % splits_);
    multiply(pairs, panels, some_depth_.first, some_depth_.count, buffers);
  }

 private:
  const float* filter(std::size_t panel) const { return convolution_.filter + panel * panel_size_; }
  float* sums(std::size_t pair) const { return sums_ + pair * kSums * sum_size(); }
  std::size_t sum_size() const { return some_depth_.count * kPanel; }

  // Makes the sums of some of the depth for some pairs of panels at a time, and with them parts of
  // the result.
  void run(float* sums, std::size_t num_threads, pthreadpool_t threads) {
    sums_ = sums;
    const std::size_t half = depth_ / 2;
    for (first_ = 0; first_ < half_panels_; first_ += held_) {
      count_ = std::min(held_, half_panels_ - first_);
      for (std::size_t depth = 0; depth < half; depth += some_half_) {
        some_depth_ = {depth, std::min(some_half_, half - depth)};
        const auto transform = [&](std::size_t first, std::size_t count) {
          for (std::size_t i = first; i < first + count; ++i) {
            const float* const panel = filter(first_ + i) + depth * kPanel;
            make_sums(panel, panel + half_panels_ * panel_size_, half, some_depth_.count,
                      this->sums(i));
          }
        };
        parallel(num_threads == 1 ? nullptr : threads, count_, strassen_scratch(2 * some_half_),
                 transform);
        run_parts(*this, num_threads, threads);
      }
    }
  }

  // The last pixel may be without another one: it is read twice, and its second result is not kept.
  void multiply(Range pairs, Range panels, std::size_t depth, std::size_t count,
                Buffers& buffers) const {
    constexpr std::size_t kSecond = kHalfDepth + kPackedSteps;
    static_assert(kSecond + kHalfDepth <= kTileStride);
    const std::size_t first = 2 * pairs.first;
    const std::size_t num_pixels = std::min(2 * pairs.count, num_pixels_ - first);
    if (!is_pointwise_) {
      windows_.copy(0, first, num_pixels, 0, depth, count, buffers.copies);
      windows_.copy(0, first, num_pixels, 0, depth_ / 2 + depth, count, buffers.copies + kSecond);
    }
    const float* pixels[2][kPackedPixels];
    Places places[kPackedPixels] = {};
    const Image<const float>* const addend = convolution_.store.addend;
    const std::size_t half = half_panels_ * kPanel;
    const auto& strides = convolution_.window.strides;
    std::size_t row = first / result_.columns;
    std::size_t column = first % result_.columns;
    for (std::size_t i = 0; i < 2 * pairs.count; ++i) {
      const std::size_t at = i % 2 * 2;
      const float* from = buffers.copies + i * kTileStride;
      if (is_pointwise_) {
        from = source_.row(row * strides[0]) + column * strides[1] * source_.pixel_stride + depth;
      }
      pixels[i % 2][i / 2] = from;
      Places& place = places[i / 2];
      place.results[at] = result_.row(row) + column * result_.pixel_stride;
      place.results[at + 1] = place.results[at] + half;
      if (addend != nullptr) {
        place.addends[at] = addend->row(row) + column * addend->pixel_stride;
        place.addends[at + 1] = place.addends[at] + half;
      }
      if (i + 2 > num_pixels) { continue; }  // the last one
      if (++column == result_.columns) {
        column = 0;
        ++row;
      }
    }
    if (num_pixels % 2 == 1 && !is_pointwise_) {
      pixels[1][pairs.count - 1] = pixels[0][pairs.count - 1];
    }
    pack_factors(pixels, pairs.count, is_pointwise_ ? depth_ / 2 : kSecond, count, buffers.packed);
    const std::size_t end = panels.first + panels.count;
    for (std::size_t panel = panels.first; panel < end; panel += kPairs) {
      const std::size_t some = std::min(kPairs, end - panel);
      multiply_panels(panel, some, pairs.count, depth, count, buffers);
      leave_panels(panel, some, pairs.count, num_pixels, depth, count, places, buffers);
    }
  }

  // Makes all products of some pairs of pixels and of panels. Biases are added to those of which
  // each result takes one.
  void multiply_panels(std::size_t panel, std::size_t num_panels, std::size_t num_pairs,
                       std::size_t depth, std::size_t count, Buffers& buffers) const {
    const std::size_t quarter = panel_size_ / 2;
    const float* const upper = filter(first_ + panel) + depth * kPanel;
    const float* const sum = sums(panel);
    const float* const other = upper + half_panels_ * panel_size_;
    const float* const filters[kProducts] = {
        upper, upper + quarter,  other + quarter,      sum + 3 * sum_size(),
        sum,   sum + sum_size(), sum + 2 * sum_size(),
    };
    const float* bias = convolution_.store.bias;
    const float* biases[kProducts] = {};
    if (bias != nullptr && depth == 0) {
      bias += (first_ + panel) * kPanel;
      biases[k12] = biases[k22] = bias;
      biases[kS1] = bias + half_panels_ * kPanel;
    }
    PackedTile tile{};
    tile.num_pixels = num_pairs;
    tile.depth = count;
    tile.channels = num_panels * kPanel;
    tile.is_first = true;
    for (std::size_t j = 0; j < kProducts; ++j) {
      float* results[kPackedPixels];
      for (std::size_t i = 0; i < kPackedPixels; ++i) {
        results[i] = buffers.products + (j * kPackedPixels + i) * kColumns;
      }
      tile.pixels = buffers.packed + j * round_up(num_pairs, 2) * count;
      tile.filter = filters[j];
      tile.panel_stride = j < kS1 && j != k22 ? panel_size_ : kSums * sum_size();
      tile.bias = biases[j];
      tile.result = results;
      multiply_packed(tile);
    }
  }

  void leave_panels(std::size_t panel, std::size_t num_panels, std::size_t num_pairs,
                    std::size_t num_pixels, std::size_t depth, std::size_t count,
                    const Places* places, Buffers& buffers) const {
    const FloatStore& store = convolution_.store;
    const std::size_t channel = (first_ + panel) * kPanel;
    const bool is_last = depth + count == depth_ / 2;
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    const bool clamps = is_last && (store.min != -kInfinite || store.max != kInfinite);
    const bool adds = depth == 0 && store.addend != nullptr;
    Places moved[kPackedPixels];
    for (std::size_t i = 0; i < num_pairs; ++i) {
      for (std::size_t j = 0; j < 4; ++j) { moved[i].results[j] = places[i].results[j] + channel; }
      if (!adds) { continue; }
      for (std::size_t j = 0; j < 4; ++j) { moved[i].addends[j] = places[i].addends[j] + channel; }
    }
    if (num_pixels % 2 == 1) {
      moved[num_pairs - 1].results[2] = buffers.unread;
      moved[num_pairs - 1].results[3] = buffers.unread;
    }
    kLeave[depth == 0][adds][clamps](buffers.products, moved, num_pairs, num_panels * kPanel,
                                     store.min, store.max);
  }

  const StrassenConvolution& convolution_;
  const Image<const float>& source_;
  const Image<float>& result_;
  const std::size_t depth_;
  const std::size_t some_half_;  // most of half the depth of which sums are made at a time
  const std::size_t num_pixels_;
  const std::size_t num_pairs_;
  const std::size_t num_groups_;   // of pairs that are multiplied together
  const std::size_t panel_size_;   // floats
  const std::size_t half_panels_;  // of half of the outputs
  const bool is_pointwise_;        // windows of one pixel, which are packed where they lie
  const Windows windows_;
  bool is_on_stack_;    // where sums are held
  std::size_t held_;    // pairs of panels whose sums are held at a time
  std::size_t splits_;  // of these, for threads
  float* sums_;
  std::size_t first_;  // pair of panels of which sums are held
  std::size_t count_;
  Range some_depth_;  // of half the depth, of which sums are held
};

}  // namespace

void convolve_strassen(const StrassenConvolution& convolution, const Image<const float>& source,
                       const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  const std::size_t num_pixels = rows.count * result.columns;
  if (rows.count < result.rows || num_pixels < kFewestPixels) {
    convolve(convolution, source, result, rows, threads);
    return;
  }
  const std::size_t products =
      num_pixels * result.channels * source.channels * convolution.window.kernel[0];
  const std::size_t num_threads = threads_worthwhile(products, threads);
  Run(convolution, source, result, num_threads).run(num_threads, threads);
}
#else
void convolve_strassen(const StrassenConvolution& convolution, const Image<const float>& source,
                       const Image<float>& result, RowRange rows, pthreadpool_t threads) {
  convolve(convolution, source, result, rows, threads);
}
#endif

}  // namespace arenite
