#include "registry.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>

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

}  // namespace

Registration::Registration(Operator kind, MakeStep make, KernelSet kernels) {
  if (!makers()[kind].emplace(kernels, make).second) {
    std::fprintf(stderr, "two files make %s with the same kernels\n",
                 program::EnumNameOperator(kind));
    std::abort();
  }
}

std::unique_ptr<Step> make_step(const Operands& operands) {
  const auto found = makers().find(operands.step.kernel_type());
  if (found == makers().end()) {
    refuse(operands, "no kernel runs it in this build");
  }
  for (const auto& [kernels, make] : found->second) {
    if (auto step = make(operands)) {
      return step;
    }
  }
  refuse(operands, "no kernel runs it on operands of these types");
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [kind, kernels] : makers()) {
    names.emplace_back(program::EnumNameOperator(kind));
  }
  return names;
}

}  // namespace arenite
