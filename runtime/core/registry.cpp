#include "registry.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "halves.hpp"
#include "operand_checks.hpp"

namespace arenite {

namespace {

using program::Operator;

using Makers = std::map<Operator, std::map<KernelSet, MakeStep>>;

// Made when it is first used: files register in whatever order they are linked.
Makers& makers() {
  static Makers table;
  return table;
}

bool has_rows(const TensorView* view) { return view != nullptr && view->rows != nullptr; }

// Whether some of its turns make a few rows, or some operand lies row by row.
bool is_by_rows(const Operands& operands) {
  return operands.in_bands || has_rows(operands.scratch) ||
         std::any_of(operands.inputs.begin(), operands.inputs.end(), has_rows) ||
         std::any_of(operands.outputs.begin(), operands.outputs.end(), has_rows);
}

// Refuses rows that the step does not find, and turns that it cannot make.
void require_rows(const Operands& operands, const Step& step) {
  require(operands, !operands.in_bands || step.makes_rows(),
          "it runs by rows, but its kernel makes the whole output");
  require(operands, !has_rows(operands.scratch), "its working memory lies row by row");
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    require(operands, !has_rows(operands.inputs[i]) || step.finds_rows(i),
            "an input is stored row by row, but its kernel reads it as a whole");
  }
  for (const auto* output : operands.outputs) {
    require(operands, !has_rows(output) || step.makes_rows(),
            "an output is stored row by row, but its kernel writes it as a whole");
  }
}

}  // namespace

Registration::Registration(Operator kind, MakeStep make, KernelSet kernels) {
  if (!makers()[kind].emplace(kernels, make).second) {
    std::fprintf(stderr, "two files register %s with the same kernels\n",
                 program::EnumNameOperator(kind));
    std::abort();
  }
}

std::unique_ptr<Step> make_step(const Operands& operands) {
  if (computes_halves(operands)) {
    // Made on every processor, so that a file is valid on all of them or on none.
    auto by_conversion = step_of_halves(operands, make_step);
    auto in_halves = step_in_halves(operands);
    return in_halves != nullptr ? std::move(in_halves) : std::move(by_conversion);
  }
  const auto found = makers().find(operands.step.kernel_type());
  if (found == makers().end()) { refuse(operands, "no kernel runs it in this build"); }
  const bool by_rows = is_by_rows(operands);
  for (const auto& [kernels, make] : found->second) {
    if (auto step = make(operands)) {
      if (by_rows) { require_rows(operands, *step); }
      return step;
    }
  }
  refuse(operands, by_rows ? "no kernel runs it by rows on these element types"
                           : "no kernel runs it on these element types");
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [kind, kernels] : makers()) {
    names.emplace_back(program::EnumNameOperator(kind));
  }
  return names;
}

}  // namespace arenite
