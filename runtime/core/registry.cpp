#include "registry.hpp"

#include "operand_checks.hpp"
#include "steps/arg_reduce.hpp"
#include "steps/binary.hpp"
#include "steps/convert.hpp"
#include "steps/copy.hpp"
#include "steps/cumulative_sum.hpp"
#include "steps/gather.hpp"
#include "steps/gru.hpp"
#include "steps/instance_norm.hpp"
#include "steps/l2_norm.hpp"
#include "steps/layer_norm.hpp"
#include "steps/local_response_norm.hpp"
#include "steps/lstm.hpp"
#include "steps/matmul.hpp"
#include "steps/multiply_add.hpp"
#include "steps/pool.hpp"
#include "steps/reduce.hpp"
#include "steps/resize.hpp"
#include "steps/select.hpp"
#include "steps/softmax.hpp"
#include "steps/svdf.hpp"
#include "steps/unary.hpp"
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
      {Operator::MultiplyAdd, {make_multiply_add}},
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
      {Operator::Lstm, {make_lstm}},
      {Operator::Gru, {make_gru}},
      {Operator::Svdf, {make_svdf}},
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
