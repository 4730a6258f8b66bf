#include "registry.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "halves.hpp"
#include "operand_checks.hpp"

namespace arenite {

namespace {

using program::Operator;

// Of one operator, by kernel set; null where a set has none.
using Makers = std::array<MakeStep, static_cast<std::size_t>(KernelSet::fallback) + 1>;

// Those of every value that a file may state. Made when they are first used: files register in
// whatever order they are linked.
auto& makers() {
  static std::array<Makers, std::numeric_limits<std::uint8_t>::max() + 1> table{};
  return table;
}

Makers& makers_of(Operator kind) { return makers()[static_cast<std::size_t>(kind)]; }

bool is_any(const Makers& found) {
  return std::any_of(found.begin(), found.end(), [](MakeStep make) { return make != nullptr; });
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
  auto& maker = makers_of(kind)[static_cast<std::size_t>(kernels)];
  if (maker != nullptr) {
    std::fprintf(stderr, "two files register %s with the same kernels\n",
                 program::EnumNameOperator(kind));
    std::abort();
  }
  maker = make;
}

std::unique_ptr<Step> make_step(const Operands& operands) {
  if (computes_halves(operands)) {
    // Made on every processor, so that a file is valid on all of them or on none.
    auto by_conversion = step_of_halves(operands, make_step);
    auto in_halves = step_in_halves(operands);
    return in_halves != nullptr ? std::move(in_halves) : std::move(by_conversion);
  }
  const auto& found = makers_of(operands.step.kernel_type());
  const bool by_rows = is_by_rows(operands);
  for (const MakeStep make : found) {
    auto step = make == nullptr ? nullptr : make(operands);
    if (step != nullptr) {
      if (by_rows) { require_rows(operands, *step); }
      return step;
    }
  }
  if (!is_any(found)) { refuse(operands, "no kernel runs it in this build"); }
  refuse(operands, by_rows ? "no kernel runs it by rows on these element types"
                           : "no kernel runs it on these element types");
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const Operator kind : program::EnumValuesOperator()) {
    if (is_any(makers_of(kind))) { names.emplace_back(program::EnumNameOperator(kind)); }
  }
  return names;
}

}  // namespace arenite
