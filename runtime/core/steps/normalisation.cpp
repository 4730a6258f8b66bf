// Normalisations of each row of the last axes: layer, local response and L2 norms, the scale and
// shift of a batch norm, and hardmax.
#include <algorithm>
#include <cmath>

#include "kernels/sums.hpp"
#include "registry.hpp"
#include "steps/rows.hpp"

namespace arenite {

namespace {

// Returns the length of the rows along the last axis. Requires floats, and an output of the shape
// of the first input.
std::size_t row_length(const Operands& operands) {
  const auto& source = *operands.inputs[0];
  require(operands, source.rank() > 0 && source.shape == operands.outputs[0]->shape,
          "input and output differ");
  require_floats(operands);
  return source.shape.back();
}

std::unique_ptr<Step> make_hardmax(const Operands& operands) {
  require_arity(operands, 1, 1);
  return make_rows<float>(
      operands, row_length(operands), [](const float* from, float* to, std::size_t count) {
        // Found before anything is written: the target may be the source.
        const std::ptrdiff_t first = std::max_element(from, from + count) - from;
        std::fill(to, to + count, 0.0f);
        to[first] = 1.0f;
      });
}

std::unique_ptr<Step> make_l2_norm(const Operands& operands) {
  require_arity(operands, 1, 1);
  const float epsilon = operands.step.kernel_as_L2Norm()->epsilon();
  return make_rows<float>(
      operands, row_length(operands), [=](const float* from, float* to, std::size_t count) {
        const float squares = sum_of(count, [=](std::size_t i) { return from[i] * from[i]; });
        const float length = std::max(std::sqrt(squares), epsilon);
        const float factor = length > 0 ? 1.0f / length : 0.0f;
        for (std::size_t i = 0; i < count; ++i) { to[i] = from[i] * factor; }
      });
}

std::unique_ptr<Step> make_local_response_norm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_LocalResponseNorm();
  require_arity(operands, 1, 1);
  const std::size_t length = row_length(operands);
  require(operands, lie_apart(operands) || operands.inputs[0]->data != operands.outputs[0]->data,
          "its output must not overlap its input");
  require(operands, attributes.size() > 0, "the size must be above 0");
  const std::size_t below = (attributes.size() - 1) / 2;
  const std::size_t above = attributes.size() / 2;
  const float alpha = attributes.alpha() / static_cast<float>(attributes.size());
  const float beta = attributes.beta();
  const float bias = attributes.bias();
  return make_rows<float>(operands, length, [=](const float* from, float* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) { to[i] = 0; }
    // The energy of the neighbours, one neighbour at a time.
    for (std::size_t k = 0; k <= std::min(above, count - 1); ++k) {
      for (std::size_t i = k; i < count; ++i) { to[i - k] += from[i] * from[i]; }
    }
    for (std::size_t k = 1; k <= std::min(below, count - 1); ++k) {
      for (std::size_t i = k; i < count; ++i) { to[i] += from[i - k] * from[i - k]; }
    }
    // Nearly every network has the exponent 3/4, which takes two square roots.
    if (beta == 0.75f) {
      for (std::size_t i = 0; i < count; ++i) {
        const float root = std::sqrt(bias + alpha * to[i]);
        to[i] = from[i] / (root * std::sqrt(root));
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        to[i] = from[i] / std::pow(bias + alpha * to[i], beta);
      }
    }
  });
}

std::unique_ptr<Step> make_layer_norm(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_LayerNorm();
  require_arity(operands, 1, 3);
  const auto& source = *operands.inputs[0];
  const auto* scale = optional_input(operands, 1);
  const auto* shift = optional_input(operands, 2);
  require(operands, source.shape == operands.outputs[0]->shape, "input and output differ");
  require(operands, attributes.num_axes() > 0 && attributes.num_axes() <= source.rank(),
          "it has more axes than its input");
  std::size_t length = 1;
  for (std::size_t axis = source.rank() - attributes.num_axes(); axis < source.rank(); ++axis) {
    length *= source.shape[axis];
  }
  require_floats(operands);
  for (const auto* view : {scale, shift}) {
    require(operands, view == nullptr || view->num_elements() == length,
            "its scale or shift does not fit");
  }
  const float* factors = scale == nullptr ? nullptr : scale->as<float>();
  const float* terms = shift == nullptr ? nullptr : shift->as<float>();
  const float epsilon = attributes.epsilon();
  const bool centres = attributes.centres();
  return make_rows<float>(operands, length, [=](const float* from, float* to, std::size_t count) {
    const auto size = static_cast<float>(count);
    const float mean =
        centres ? sum_of(count, [=](std::size_t i) { return from[i]; }) / size : 0.0f;
    const float squares = sum_of(count, [=](std::size_t i) {
      const float distance = from[i] - mean;
      return distance * distance;
    });
    const float factor = 1.0f / std::sqrt(squares / size + epsilon);
    const auto normalise = [=](auto last) {
      std::size_t done = 0;
#ifdef ARENITE_ARM64
      // Four vectors at a time: small processors do nothing else while one waits for its last
      // result.
      constexpr std::size_t kBlock = 16;
      for (; done + kBlock <= count; done += kBlock) {
        float made[kBlock];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kBlock; ++i) {
          made[i] = last((from[done + i] - mean) * factor, done + i);
        }
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kBlock; ++i) { to[done + i] = made[i]; }
      }
#endif
#pragma GCC ivdep
      for (std::size_t i = done; i < count; ++i) { to[i] = last((from[i] - mean) * factor, i); }
    };
    if (factors != nullptr && terms != nullptr) {
      normalise([=](float x, std::size_t i) { return x * factors[i] + terms[i]; });
    } else if (factors != nullptr) {
      normalise([=](float x, std::size_t i) { return x * factors[i]; });
    } else if (terms != nullptr) {
      normalise([=](float x, std::size_t i) { return x + terms[i]; });
    } else {
      normalise([](float x, std::size_t) { return x; });
    }
  });
}

// A batch norm that no other step absorbed.
std::unique_ptr<Step> make_multiply_add(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_MultiplyAdd();
  require_arity(operands, 3, 3);
  const std::size_t length = row_length(operands);
  for (const std::size_t position : {1u, 2u}) {
    require(operands, operands.inputs[position]->num_elements() == length,
            "its factors or terms do not fit");
  }
  const float* factors = operands.inputs[1]->as<float>();
  const float* terms = operands.inputs[2]->as<float>();
  const float min = attributes.min();
  const float max = attributes.max();
  return make_rows<float>(operands, length, [=](const float* from, float* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const float value = from[i] * factors[i] + terms[i];
      to[i] = std::min(std::max(value, min), max);
    }
  });
}

const Registration registered[] = {
    {program::Operator::Hardmax, make_hardmax},
    {program::Operator::L2Norm, make_l2_norm},
    {program::Operator::LayerNorm, make_layer_norm},
    {program::Operator::LocalResponseNorm, make_local_response_norm},
    {program::Operator::MultiplyAdd, make_multiply_add},
};

}  // namespace

}  // namespace arenite
