#include "kernels/convolution/half_filter.hpp"

#include <algorithm>

#include "kernels/parallel.hpp"

namespace arenite {

namespace {

// Some channels of an image.
template <typename T>
Image<T> channels_of(const Image<T>& image, std::size_t first, std::size_t count) {
  Image<T> part = image;
  part.data += first;
  part.channels = count;
  return part;
}

}  // namespace

void convolve_half_filter(const HalfFilterConvolution& convolution,
                          const Image<const float>& source, const Image<float>& result,
                          RowRange rows, pthreadpool_t threads) {
  const auto& kernel = convolution.window.kernel;
  const std::size_t panel_size = kPanel * kernel[0] * kernel[1] * source.channels;
  const std::size_t panels = divide_up(result.channels, kPanel);
  for (std::size_t done = 0; done < panels; done += convolution.num_panels) {
    const std::size_t count = std::min(convolution.num_panels, panels - done);
    const Half* const filter = convolution.filter + done * panel_size;
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

}  // namespace arenite
