// Convolutions, and products with weights, in floating point.
#include <algorithm>
#include <optional>

#include "convolution_checks.hpp"
#include "convolution_step.hpp"
#include "kernels/convolution/convolve.hpp"
#include "kernels/convolution/depthwise.hpp"
#include "kernels/convolution/short_filter.hpp"
#include "kernels/convolution/strassen.hpp"
#include "kernels/convolution/winograd.hpp"
#include "registry.hpp"

namespace arenite {

namespace {

constexpr std::size_t kMostThreads = 256;  // for which a program may state working memory

// The filter may be of 16 bits.
bool are_floats(const Operands& operands) {
  const auto* short_filter = has_short_filter(operands) ? operands.inputs[1] : nullptr;
  const auto is_float = [short_filter](const TensorView* view) {
    return view == nullptr || view == short_filter || view->type == program::Type::float32;
  };
  return std::all_of(operands.inputs.begin(), operands.inputs.end(), is_float) &&
         is_float(operands.outputs[0]);
}

template <typename Attributes>
FloatStore store(const Operands& operands, const Attributes& attributes, std::size_t num_channels) {
  const auto* bias = optional_input(operands, 2);
  require(operands, bias == nullptr || bias->num_elements() == num_channels,
          "its bias does not fit");
  const auto* addend = optional_input(operands, kAddend);
  require(operands, addend == nullptr || addend->shape == operands.outputs[0]->shape,
          "its addend has another shape than its output");
  require(operands, attributes.min() <= attributes.max(), "its min is above its max");
  return {bias == nullptr ? nullptr : bias->as<float>(), nullptr, attributes.min(),
          attributes.max()};
}

// A Winograd convolution by tiles of so many results; none where this kind of processor has none.
std::optional<WinogradConvolution> winograd(const Operands& operands, const Convolution& direct,
                                            std::size_t results, std::size_t num_threads) {
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const SlidingWindow& window = direct.window;
  const WinogradTile tile{window.kernel, results};
  constexpr std::array<std::uint32_t, 2> kOnes{1, 1};
  require(operands,
          direct.groups == 1 && tile.has_valid_kernel() && window.strides == kOnes &&
              window.dilations == kOnes,
          "Winograd tiles need windows of 3 x 3, 5 x 5, or one row or column of 3, 5 or 7, "
          "with strides of 1");
  require(operands, tile.is_valid(),
          "Winograd tiles must have 2, 4 or 6 rows for 3 x 3 windows, and make eight points of "
          "others");
  require(operands, !operands.in_bands, "Winograd tiles cannot run in bands");
  require(operands, num_threads > 0 && num_threads <= kMostThreads,
          "its number of threads must be 1 to 256");
  // Processors with fewer points may take smaller tiles.
  std::size_t bytes = 0;
  for (const WinogradTile& taken :
       {tile, WinogradTile{tile.kernel, std::min<std::size_t>(results, 4)}}) {
    if (!taken.is_valid()) { continue; }
    bytes = std::max(bytes, winograd_scratch(taken, source.shape[3], result.shape[1],
                                             result.shape[2], {0, result.shape[1]}, num_threads));
  }
  auto* const working_memory = require_scratch(operands, bytes);
  if (!tile.here().is_valid()) { return std::nullopt; }
  return WinogradConvolution{tile.here(),    window.padding,         direct.filter, direct.store,
                             working_memory, operands.scratch->size, num_threads};
}

// With as many panels of the filter at a time as working memory holds.
template <typename Short>
ShortFilterConvolution<Short> of_short_filter(const Operands& operands, const SlidingWindow& window,
                                              const FloatStore& store) {
  const auto& filter = *operands.inputs[1];
  const std::size_t panels = filter.shape[0];
  require(operands, panels > 0 && filter.size > 0, "its filter is empty");
  if (reads_short_filter(operands)) { return {window, filter.as<Short>(), nullptr, 0, store}; }
  const std::size_t panel_bytes = filter.num_elements() / panels * sizeof(float);
  const std::size_t given = operands.scratch == nullptr ? 0 : operands.scratch->size;
  const std::size_t held = std::min(panels, std::max<std::size_t>(given / panel_bytes, 1));
  auto* const working_memory = require_scratch(operands, held * panel_bytes);
  return {window, filter.as<Short>(), reinterpret_cast<float*>(working_memory), held, store};
}

// Returns what `make` makes of the kernel and its convolution.
template <typename Make>
std::unique_ptr<Step> with_short_filter(const Operands& operands, const SlidingWindow& window,
                                        const FloatStore& store, const Make& make) {
  if (operands.inputs[1]->type == program::Type::bfloat16) {
    return make(convolve_short_filter<BFloat>, of_short_filter<BFloat>(operands, window, store));
  }
  return make(convolve_short_filter<Half>, of_short_filter<Half>(operands, window, store));
}

// With sums of panels of the filter, in working memory if there is any.
std::optional<StrassenConvolution> by_strassen(const Operands& operands, bool is_stated,
                                               const Convolution& direct, std::size_t inputs,
                                               std::size_t outputs, std::size_t most_depth) {
  const auto& kernel = direct.window.kernel;
  const std::size_t depth = kernel[0] * kernel[1] * inputs;
  const bool takes_them = direct.groups == 1 && takes_sums(depth, outputs) && !operands.in_bands;
  const std::size_t given = operands.scratch == nullptr ? 0 : operands.scratch->size;
  if (!is_stated || !takes_them) { return std::nullopt; }
  return StrassenConvolution{direct, most_depth, require_scratch(operands, given), given};
}

std::unique_ptr<Step> make_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Conv2D();
  require_arity(operands, 2, 5);
  if (!are_floats(operands)) { return nullptr; }
  const auto& result = *operands.outputs[0];
  const SlidingWindow window = conv_window(operands, attributes);
  const FloatStore last = store(operands, attributes, result.shape[3]);
  if (has_short_filter(operands)) {
    require(operands,
            attributes.groups() == 1 && attributes.tile() == 0 && attributes.tuned_tile() == 0,
            "a filter of 16-bit floats has groups or Winograd tiles");
    return with_short_filter(operands, window, last, [&](auto run, const auto& kernel) {
      return image_step<float>(operands, run, kernel);
    });
  }
  const Convolution kernel{window, attributes.groups(), operands.inputs[1]->as<float>(), last};
  require(operands, operands.tuning != Tuning::none || attributes.tuned_tile() == 0,
          "it states tuned tiles, but the program states no processor");
  // Both choices are checked on every processor, so that a file is valid on all of them or on none.
  std::optional<WinogradConvolution> taken;
  const bool is_small = result.shape[1] * result.shape[2] < kFewestPixels;
  for (const bool is_tuned : {false, true}) {
    const std::size_t tile = is_tuned ? attributes.tuned_tile() : attributes.tile();
    if (tile == 0) { continue; }
    const auto by_tiles = winograd(
        operands, kernel, tile, is_tuned ? attributes.tuned_threads() : attributes.tile_threads());
    const bool is_chosen = is_tuned == (operands.tuning == Tuning::here);
    if (is_chosen && (is_tuned || !is_small)) { taken = by_tiles; }
  }
  if (taken.has_value()) { return image_step<float>(operands, convolve_winograd, *taken); }
  if (const auto sums =
          by_strassen(operands, attributes.strassen(), kernel, operands.inputs[0]->shape[3],
                      result.shape[3], kMostStrassenDepth)) {
    return image_step<float>(operands, convolve_strassen, *sums);
  }
  return image_step<float>(operands, convolve, kernel);
}

std::unique_ptr<Step> make_fully_connected(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_FullyConnected();
  require_arity(operands, 2, 5);
  if (!are_floats(operands)) { return nullptr; }
  const MatrixProduct product(operands);
  const SlidingWindow window{{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}};
  const FloatStore last = store(operands, attributes, product.num_outputs);
  if (has_short_filter(operands)) {
    return with_short_filter(operands, window, last, [&](auto run, const auto& kernel) {
      return pixel_step<float>(operands, run, kernel, product.rows);
    });
  }
  const Convolution kernel{window, 1, operands.inputs[1]->as<float>(), last};
  if (const auto sums = by_strassen(operands, attributes.strassen(), kernel, product.num_inputs,
                                    product.num_outputs, kMatrixStrassenDepth)) {
    return pixel_step<float>(operands, convolve_strassen, *sums, product.rows);
  }
  return pixel_step<float>(operands, convolve, kernel, product.rows);
}

std::unique_ptr<Step> make_depthwise_conv_2d(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_DepthwiseConv2D();
  require_arity(operands, 2, 5);
  if (!are_floats(operands)) { return nullptr; }
  const auto& result = *operands.outputs[0];
  const DepthwiseConvolution kernel{depthwise_window(operands, attributes),
                                    operands.inputs[1]->as<float>(),
                                    store(operands, attributes, result.shape[3])};
  return image_step<float>(operands, convolve_depthwise, kernel);
}

const Registration registered[] = {
    {program::Operator::Conv2D, make_conv_2d},
    {program::Operator::DepthwiseConv2D, make_depthwise_conv_2d},
    {program::Operator::FullyConnected, make_fully_connected},
};

}  // namespace

}  // namespace arenite
