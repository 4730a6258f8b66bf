#include "registry.hpp"

#include "operand_checks.hpp"
#if __has_include("steps/arg_reduce.hpp")
#include "steps/arg_reduce.hpp"
#define HAVE_arg_reduce
#else
namespace arenite { static std::unique_ptr<Step> make_arg_reduce(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/binary.hpp")
#include "steps/binary.hpp"
#define HAVE_binary
#else
namespace arenite { static std::unique_ptr<Step> make_binary(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/convert.hpp")
#include "steps/convert.hpp"
#define HAVE_convert
#else
namespace arenite { static std::unique_ptr<Step> make_convert(const Operands&) { return nullptr; } }
#endif
#include "steps/copy.hpp"
#if __has_include("steps/cumulative_sum.hpp")
#include "steps/cumulative_sum.hpp"
#define HAVE_cumulative_sum
#else
namespace arenite { static std::unique_ptr<Step> make_cumulative_sum(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/gather.hpp")
#include "steps/gather.hpp"
#define HAVE_gather
#else
namespace arenite { static std::unique_ptr<Step> make_gather(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/instance_norm.hpp")
#include "steps/instance_norm.hpp"
#define HAVE_instance_norm
#else
namespace arenite { static std::unique_ptr<Step> make_instance_norm(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/l2_norm.hpp")
#include "steps/l2_norm.hpp"
#define HAVE_l2_norm
#else
namespace arenite { static std::unique_ptr<Step> make_l2_norm(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/layer_norm.hpp")
#include "steps/layer_norm.hpp"
#define HAVE_layer_norm
#else
namespace arenite { static std::unique_ptr<Step> make_layer_norm(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/local_response_norm.hpp")
#include "steps/local_response_norm.hpp"
#define HAVE_local_response_norm
#else
namespace arenite { static std::unique_ptr<Step> make_local_response_norm(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/matmul.hpp")
#include "steps/matmul.hpp"
#define HAVE_matmul
#else
namespace arenite { static std::unique_ptr<Step> make_matmul(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/pool.hpp")
#include "steps/pool.hpp"
#define HAVE_pool
#else
namespace arenite { static std::unique_ptr<Step> make_pool(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/reduce.hpp")
#include "steps/reduce.hpp"
#define HAVE_reduce
#else
namespace arenite { static std::unique_ptr<Step> make_reduce(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/resize.hpp")
#include "steps/resize.hpp"
#define HAVE_resize
#else
namespace arenite { static std::unique_ptr<Step> make_resize(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/select.hpp")
#include "steps/select.hpp"
#define HAVE_select
#else
namespace arenite { static std::unique_ptr<Step> make_select(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/softmax.hpp")
#include "steps/softmax.hpp"
#define HAVE_softmax
#else
namespace arenite { static std::unique_ptr<Step> make_softmax(const Operands&) { return nullptr; } }
#endif
#if __has_include("steps/unary.hpp")
#include "steps/unary.hpp"
#define HAVE_unary
#else
namespace arenite { static std::unique_ptr<Step> make_unary(const Operands&) { return nullptr; } }
#endif
#ifdef ARENITE_HAVE_XNNPACK
#include "xnnpack/steps.hpp"
#endif

namespace arenite {

namespace {

using program::Operator;

struct Entry {
  Operator kind;
  std::vector<MakeStep> makers;  // in order of preference
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
#ifdef ARENITE_HAVE_XNNPACK
      {Operator::Conv2D, {xnnpack::make_conv_2d}},
      {Operator::DepthwiseConv2D, {xnnpack::make_depthwise_conv_2d}},
      {Operator::TransposedConv2D, {xnnpack::make_transposed_conv_2d}},
      {Operator::FullyConnected, {xnnpack::make_fully_connected}},
      {Operator::Pool2D, {xnnpack::make_pool_2d, make_pool}},
      {Operator::Unary, {xnnpack::make_unary, make_unary}},
      {Operator::Binary, {xnnpack::make_binary, make_binary}},
      {Operator::Softmax, {xnnpack::make_softmax, make_softmax}},
#else
      {Operator::Pool2D, {make_pool}},
      {Operator::Unary, {make_unary}},
      {Operator::Binary, {make_binary}},
      {Operator::Softmax, {make_softmax}},
#endif
      {Operator::MatMul, {make_matmul}},
      {Operator::Select, {make_select}},
      {Operator::Reduce, {make_reduce}},
      {Operator::ArgReduce, {make_arg_reduce}},
      {Operator::LocalResponseNorm, {make_local_response_norm}},
      {Operator::LayerNorm, {make_layer_norm}},
      {Operator::InstanceNorm, {make_instance_norm}},
      {Operator::L2Norm, {make_l2_norm}},
      {Operator::CumulativeSum, {make_cumulative_sum}},
      {Operator::Copy, {make_copy}},
      {Operator::Gather, {make_gather}},
      {Operator::Resize2D, {make_resize}},
      {Operator::Convert, {make_convert}},
  };
  return table;
}

}  // namespace

std::unique_ptr<Step> make_step(const Operands& operands) {
  for (const auto& entry : entries()) {
    if (entry.kind != operands.step.kernel_type()) {
      continue;
    }
    for (const auto make : entry.makers) {
      if (auto step = make(operands)) {
        return step;
      }
    }
    refuse(operands, "no kernel runs it on operands of these types");
  }
  refuse(operands, "no kernel runs it in this build");
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& entry : entries()) {
    names.emplace_back(program::EnumNameOperator(entry.kind));
  }
  return names;
}

}  // namespace arenite
