#include "kernels/convolution/short_filter.hpp"

#include <algorithm>
#include <array>

#include "kernels/convolution/short_row.hpp"
#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// Panels that are multiplied with all of a few pixels before others are: they stay in the cache.
constexpr std::size_t kPanelsTogether = 8;

// Some channels of an image.
template <typename T>
Image<T> channels_of(const Image<T>& image, std::size_t first, std::size_t count) {
  Image<T> part = image;
  part.data += first;
  part.channels = count;
  return part;
}

// Multiplies pixels one by one, each made from one pixel.
template <typename Short>
void multiply_pixels(const ShortFilterConvolution<Short>& convolution,
                     const Image<const float>& source, const Image<float>& result, RowRange rows,
                     pthreadpool_t threads) {
  const FloatStore& store = convolution.store;
  const std::size_t panels = divide_up(result.channels, kPanel);
  const std::size_t groups = divide_up(panels, kPanelsTogether);
  const std::size_t width = kPanelsTogether * kPanel;
  parallel(threads, groups, 2 * width * source.channels, [&](std::size_t begin, std::size_t some) {
    for (std::size_t group = begin; group < begin + some; ++group) {
      const std::size_t channel = group * width;
      for (std::size_t i = 0; i < rows.count * result.columns; ++i) {
        const std::size_t row = rows.first + i / result.columns;
        const std::size_t column = i % result.columns;
        const auto at = [&](const auto& image) {
          return image.row(row) + column * image.pixel_stride;
        };
        multiply_short_row(ShortRow<Short>{
            at(source), source.channels, convolution.filter + channel * source.channels,
            store.bias == nullptr ? nullptr : store.bias + channel,
            store.addend == nullptr ? nullptr : at(*store.addend) + channel, at(result) + channel,
            std::min(width, result.channels - channel), store.min, store.max});
      }
    }
  });
}

}  // namespace

template <typename Short>
void convolve_short_filter(const ShortFilterConvolution<Short>& convolution,
                           const Image<const float>& source, const Image<float>& result,
                           RowRange rows, pthreadpool_t threads) {
  if (convolution.window.is_pointwise() && rows.count * result.columns <= kFewShortPixels) {
    multiply_pixels(convolution, source, result, rows, threads);
    return;
  }
  const auto& kernel = convolution.window.kernel;
  const std::size_t panel_size = kPanel * kernel[0] * kernel[1] * source.channels;
  const std::size_t panels = divide_up(result.channels, kPanel);
  for (std::size_t done = 0; done < panels; done += convolution.num_panels) {
    const std::size_t count = std::min(convolution.num_panels, panels - done);
    const Short* const filter = convolution.filter + done * panel_size;
    parallel(threads, count, 4 * panel_size, [&](std::size_t first, std::size_t some) {
      widen(filter + first * panel_size, convolution.panels + first * panel_size,
            some * panel_size);
    });
    const std::size_t channel = done * kPanel;
    const std::size_t channels = std::min(count * kPanel, result.channels - channel);
    Convolution part{convolution.window, 1, convolution.panels, convolution.store};
    if (part.store.bias != nullptr) { part.store.bias += channel; }
    Image<const float> addend;
    if (part.store.addend != nullptr) {
      addend = channels_of(*part.store.addend, channel, channels);
      part.store.addend = &addend;
    }
    convolve(part, source, channels_of(result, channel, channels), rows, threads);
  }
}

template void convolve_short_filter(const ShortFilterConvolution<Half>&, const Image<const float>&,
                                    const Image<float>&, RowRange, pthreadpool_t);
template void convolve_short_filter(const ShortFilterConvolution<BFloat>&,
                                    const Image<const float>&, const Image<float>&, RowRange,
                                    pthreadpool_t);

}  // namespace arenite
