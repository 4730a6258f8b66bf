#include "sizes.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "checking.hpp"
#include "lanes.hpp"
#include "sized_tensors.hpp"
#include "stated_numbers.hpp"
#include "validation.hpp"

namespace arenite {

namespace {

using program::Arithmetic;
using program::Operator;
using program::Program;

constexpr std::size_t kMaxDimensions = 256;
constexpr std::size_t kMaxExpressions = std::size_t{1} << 16;
constexpr std::size_t kMaxCopied = std::size_t{1} << 26;  // bytes of steps
constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

std::string range_of(const program::Dimension& dimension) {
  std::string text = std::to_string(dimension.low()) + " to " + std::to_string(dimension.high());
  if (dimension.step() != 1) { text += ", in steps of " + std::to_string(dimension.step()); }
  return text;
}

void check_dimensions(const Program& program) {
  const auto& dimensions = *program.dimensions();
  if (dimensions.size() > kMaxDimensions) {
    refuse("a program has at most " + std::to_string(kMaxDimensions) + " dimensions, not " +
           std::to_string(dimensions.size()));
  }
  std::set<std::string> names;
  for (const auto* each : dimensions) {
    const std::string label = "dimension " + quoted(each->name());
    if (!names.insert(each->name()->str()).second) { refuse(label + " has a duplicate name"); }
    if (each->low() > each->high() || each->high() > static_cast<std::uint64_t>(kMaxSize) ||
        each->step() == 0 || (each->high() - each->low()) % each->step() != 0) {
      refuse(label + " has no range: " + range_of(*each));
    }
  }
}

void check_expressions(const Program& program) {
  const std::size_t stated = count(program.expressions());
  if (stated > kMaxExpressions) {
    refuse("a program has at most " + std::to_string(kMaxExpressions) + " expressions, not " +
           std::to_string(stated));
  }
  for (std::size_t i = 0; i < stated; ++i) {
    const auto& each = *program.expressions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto is_below = [](std::int64_t index, std::size_t end) {
      return index >= 0 && static_cast<std::uint64_t>(index) < end;
    };
    const bool is_known = each.operation() == Arithmetic::constant ||
                          (each.operation() == Arithmetic::dimension
                               ? is_below(each.a(), program.dimensions()->size())
                               : each.operation() <= Arithmetic::MAX && is_below(each.a(), i) &&
                                     is_below(each.b(), i));
    if (!is_known) {
      refuse("expression " + std::to_string(i) +
             " is of an unknown operation, or not of dimensions and expressions before it");
    }
  }
}

void require_expression(const Program& program, std::uint32_t index, const std::string& label) {
  if (index >= count(program.expressions())) {
    refuse(label + " is expression " + std::to_string(index) + " of " +
           std::to_string(count(program.expressions())));
  }
}

void require_value(std::int64_t value, std::int64_t stated, const std::string& label) {
  if (value != stated) {
    refuse(label + " is " + std::to_string(stated) + ", at the highest sizes its expression is " +
           std::to_string(value));
  }
}

// A tensor among the weights has the front part of its bytes at smaller sizes.
void check_prefix(const TensorView& view, std::size_t axis, const std::string& label) {
  if (view.coded_size != 0) { refuse(label + " is of a coded constant"); }
  for (std::size_t before = 0; before < axis && view.is_constant; ++before) {
    if (view.shape[before] != 1) {
      refuse(label + " is no front part of a constant: an axis before it has length " +
             std::to_string(view.shape[before]));
    }
  }
}

void check_axes(const Program& program, const std::vector<TensorView>& tensors,
                const std::vector<std::int64_t>& values) {
  std::int64_t last_tensor = -1;
  std::int64_t last_axis = -1;
  for (std::size_t i = 0; i < count(program.axes()); ++i) {
    const auto& each = *program.axes()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (each.tensor() >= tensors.size() || each.axis() >= tensors[each.tensor()].rank()) {
      refuse("sized axis " + std::to_string(i) + " is axis " + std::to_string(each.axis()) +
             " of tensor " + std::to_string(each.tensor()) + ", which does not exist");
    }
    const auto& view = tensors[each.tensor()];
    const std::string label = "axis " + std::to_string(each.axis()) + " of tensor " +
                              quoted(program.tensors()->Get(each.tensor())->name());
    const bool follows = std::tie(last_tensor, last_axis) <
                         std::make_tuple(std::int64_t{each.tensor()}, std::int64_t{each.axis()});
    if (!follows) { refuse(label + " is out of order among the sized axes"); }
    require_expression(program, each.expression(), label);
    check_prefix(view, each.axis(), label);
    if (view.is_constant && last_tensor == each.tensor()) {
      refuse(label + " is the second sized axis of a constant");
    }
    if (view.rows != nullptr && each.axis() == 0) { refuse(label + " is of rows, and must be 1"); }
    if (view.scales.size() > 1 && view.axis == each.axis()) {
      refuse(label + " has a scale for each index");
    }
    require_value(values[each.expression()], static_cast<std::int64_t>(view.shape[each.axis()]),
                  label);
    last_tensor = each.tensor();
    last_axis = each.axis();
  }
}

void check_numbers(const Program& program, const std::vector<std::int64_t>& values) {
  std::int64_t last_step = -1;
  std::int64_t last_number = -1;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < count(program.numbers()); ++i) {
    const auto& each = *program.numbers()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (each.step() >= program.steps()->size()) {
      refuse("sized number " + std::to_string(i) + " is of step " + std::to_string(each.step()) +
             " of " + std::to_string(program.steps()->size()));
    }
    const auto& step = *program.steps()->Get(each.step());
    const std::string label =
        "number " + std::to_string(each.number()) + " of step " + quoted(step.name());
    const bool follows = std::tie(last_step, last_number) <
                         std::make_tuple(std::int64_t{each.step()}, std::int64_t{each.number()});
    if (!follows) { refuse(label + " is out of order among the sized numbers"); }
    require_expression(program, each.expression(), label);
    require_value(values[each.expression()], StatedNumber(step, each.number()).read(), label);
    copied += last_step != each.step() ? copied_bytes(step, kMaxCopied) : 0;
    if (copied > kMaxCopied) { refuse(label + " is of a step that is too large"); }
    last_step = each.step();
    last_number = each.number();
  }
}

// By expression, whether it depends on what a step counts in the run.
std::vector<bool> counted_expressions(const Program& program) {
  std::vector<bool> found;
  for (std::size_t i = 0; i < count(program.expressions()); ++i) {
    const auto& each = *program.expressions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto a = static_cast<std::size_t>(each.a());
    switch (each.operation()) {
      case Arithmetic::constant: found.push_back(false); break;
      case Arithmetic::dimension:
        found.push_back(
            is_counted(*program.dimensions()->Get(static_cast<flatbuffers::uoffset_t>(a))));
        break;
      default: found.push_back(found[a] || found[static_cast<std::size_t>(each.b())]); break;
    }
  }
  return found;
}

void check_offsets(const Program& program, const std::vector<TensorView>& tensors,
                   const std::vector<std::int64_t>& values) {
  if (count(program.offsets()) == 0) { return; }
  std::set<std::int64_t> fixed;
  for (std::size_t i = 0; i < count(program.states()); ++i) {
    fixed.insert(program.states()->Get(static_cast<flatbuffers::uoffset_t>(i))->tensor());
  }
  for (const auto* step : *program.steps()) {
    for (const auto* list : {step->inputs(), step->outputs()}) {
      if (runs_beside(*step) && list != nullptr) { fixed.insert(list->begin(), list->end()); }
    }
  }
  const auto counted = counted_expressions(program);
  std::int64_t last = -1;
  for (std::size_t i = 0; i < program.offsets()->size(); ++i) {
    const auto& each = *program.offsets()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (each.tensor() >= tensors.size()) {
      refuse("sized offset " + std::to_string(i) + " is of tensor " +
             std::to_string(each.tensor()) + ", which does not exist");
    }
    const auto& view = tensors[each.tensor()];
    const std::string label =
        "the offset of tensor " + quoted(program.tensors()->Get(each.tensor())->name());
    if (each.tensor() <= last) { refuse(label + " is out of order among the sized offsets"); }
    last = each.tensor();
    require_expression(program, each.expression(), label);
    require_value(values[each.expression()], static_cast<std::int64_t>(view.offset), label);
    if (view.is_constant || view.is_spilled || view.rows != nullptr ||
        fixed.count(each.tensor()) != 0) {
      refuse(label + " is of a constant, a state, a tensor that lies row by row, or one that " +
             "another lane touches");
    }
    if (counted[each.expression()]) { refuse(label + " depends on what a step counts in the run"); }
  }
}

// Refuses a dimension that no step counts, or whose step has no room for as many as it has.
void check_counts(const Program& program) {
  for (flatbuffers::uoffset_t i = 0; i < program.dimensions()->size(); ++i) {
    const auto& dimension = *program.dimensions()->Get(i);
    if (!is_counted(dimension)) { continue; }
    const auto step = static_cast<std::size_t>(dimension.counted_by());
    const std::string label = "dimension " + quoted(dimension.name());
    if (step >= program.steps()->size()) { refuse(label + " is counted by no step"); }
    const auto& stated = *program.steps()->Get(static_cast<flatbuffers::uoffset_t>(step));
    const bool counts = stated.kernel_type() == Operator::NonZero ||
                        stated.kernel_type() == Operator::NonMaxSuppression;
    const bool has_rows =
        counts && count(stated.outputs()) == 1 && dimension.low() == 0 && dimension.step() == 1 &&
        count(program.axes()) != 0 &&
        std::any_of(program.axes()->begin(), program.axes()->end(), [&](const auto* axis) {
          const auto& length = *program.expressions()->Get(axis->expression());
          return axis->axis() == 0 &&
                 static_cast<std::int64_t>(axis->tensor()) == stated.outputs()->Get(0) &&
                 length.operation() == Arithmetic::dimension && length.a() == i;
        });
    if (!has_rows) { refuse(label + " is not the number of rows of the step that counts it"); }
  }
}

// Refuses a dimension that grows by what is not known before the run, and states whose rows no
// such dimension counts.
void check_growth(const Program& program, const std::vector<TensorView>& tensors) {
  const auto counted = counted_expressions(program);
  for (const auto* dimension : *program.dimensions()) {
    if (!grows(*dimension)) { continue; }
    const std::string label = "dimension " + quoted(dimension->name());
    const auto expression = static_cast<std::uint32_t>(dimension->grows_by());
    require_expression(program, expression, label + ": its growth");
    if (is_counted(*dimension) || counted[expression] || dimension->low() != 0 ||
        dimension->step() != 1) {
      refuse(label + " grows, and is counted in the run or does not begin at 0 in steps of 1");
    }
  }
  for (std::size_t i = 0; i < count(program.states()); ++i) {
    const auto& state = *program.states()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (state.rows() == -1) { continue; }
    const auto& view = tensors[static_cast<std::size_t>(state.tensor())];
    const auto rows = static_cast<std::uint32_t>(state.rows());
    const bool is_counted_by_it = state.rows() >= 0 && rows < program.dimensions()->size() &&
                                  grows(*program.dimensions()->Get(rows)) && view.rank() >= 1 &&
                                  program.dimensions()->Get(rows)->high() <= view.shape[0];
    if (!is_counted_by_it) {
      refuse(
          "the rows of state " +
          quoted(
              program.tensors()->Get(static_cast<flatbuffers::uoffset_t>(state.tensor()))->name()) +
          " are counted by no dimension that grows to as many");
    }
  }
}

// Both may be the lowest number.
std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) { refuse("an expression divides by 0 at these sizes"); }
  if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) {
    refuse("an expression does not fit 64 bits at these sizes");
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

void check_sizes(const Program& program, const std::vector<TensorView>& tensors,
                 const std::vector<Room>& rooms) {
  if (!has_dimensions(program)) {
    if (count(program.expressions()) + count(program.axes()) + count(program.numbers()) +
            count(program.offsets()) !=
        0) {
      refuse("the program has sizes, and no dimensions");
    }
    for (std::size_t i = 0; i < count(program.states()); ++i) {
      if (program.states()->Get(static_cast<flatbuffers::uoffset_t>(i))->rows() != -1) {
        refuse("a state has rows that are counted, and the program has no dimensions");
      }
    }
    return;
  }
  check_dimensions(program);
  check_expressions(program);
  std::vector<std::int64_t> values(count(program.expressions()));
  evaluate(program, highest_sizes(program), values);
  check_axes(program, tensors, values);
  check_numbers(program, values);
  check_counts(program);
  check_growth(program, tensors);
  check_offsets(program, tensors, values);
  sized_places(program, tensors, rooms);
}

std::vector<std::int64_t> lowest_sizes(const Program& program) {
  std::vector<std::int64_t> sizes;
  for (const auto* each : *program.dimensions()) {
    sizes.push_back(static_cast<std::int64_t>(each->low()));
  }
  return sizes;
}

std::vector<std::int64_t> highest_sizes(const Program& program) {
  std::vector<std::int64_t> sizes;
  for (const auto* each : *program.dimensions()) {
    sizes.push_back(static_cast<std::int64_t>(each->high()));
  }
  return sizes;
}

void require_inside(const Program& program, const std::vector<std::int64_t>& sizes) {
  const auto& dimensions = *program.dimensions();
  for (flatbuffers::uoffset_t i = 0; i < dimensions.size(); ++i) {
    const auto& each = *dimensions.Get(i);
    const auto low = static_cast<std::int64_t>(each.low());
    const std::int64_t size = sizes[i];
    if (grows(each) && size > static_cast<std::int64_t>(each.high())) {
      throw StatesFullError("the states hold " + std::to_string(size) + " rows of dimension " +
                            quoted(each.name()) + "; a run begins with at most " +
                            std::to_string(each.high()) +
                            ": truncate or reset them, or build for a longer range");
    }
    if (size < low || size > static_cast<std::int64_t>(each.high()) ||
        (size - low) % static_cast<std::int64_t>(each.step()) != 0) {
      throw SizeRangeError("dimension " + quoted(each.name()) + " is " + std::to_string(size) +
                           "; its range is " + range_of(each));
    }
  }
}

std::vector<SizeSource> size_sources(const Program& program) {
  // By expression, the only dimension in it, besides those that grow.
  constexpr std::size_t kNone = kMaxDimensions;
  constexpr std::size_t kSeveral = kMaxDimensions + 1;
  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < count(program.expressions()); ++i) {
    const auto& each = *program.expressions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto a = static_cast<std::size_t>(each.a());
    switch (each.operation()) {
      case Arithmetic::constant: parts.push_back(kNone); break;
      case Arithmetic::dimension: {
        const auto& dimension = *program.dimensions()->Get(static_cast<flatbuffers::uoffset_t>(a));
        parts.push_back(grows(dimension) ? kNone : a);
        break;
      }
      default:
        const std::size_t one = parts[a];
        const std::size_t other = parts[static_cast<std::size_t>(each.b())];
        parts.push_back(one == kNone || one == other ? other : other == kNone ? one : kSeveral);
        break;
    }
  }
  // Whether an expression is the dimension itself, at both ends of its range.
  const auto is_itself = [&](std::size_t expression, std::size_t dimension) {
    std::vector<std::int64_t> values(parts.size());
    std::vector<std::int64_t> sizes = highest_sizes(program);
    const std::int64_t low = lowest_sizes(program)[dimension];
    evaluate(program, sizes, values);
    bool is = values[expression] == sizes[dimension];
    sizes[dimension] = low;
    evaluate(program, sizes, values);
    return is && values[expression] == low;
  };
  std::vector<SizeSource> found;
  for (std::size_t dimension = 0; dimension < program.dimensions()->size(); ++dimension) {
    SizeSource chosen{dimension, 0, 0, parts.size()};
    bool is_chosen = false;  // for good
    for (std::size_t i = 0; i < count(program.axes()); ++i) {
      const auto& each = *program.axes()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (parts[each.expression()] != dimension || is_chosen) { continue; }
      for (flatbuffers::uoffset_t input = 0; input < program.inputs()->size(); ++input) {
        const auto& port = *program.inputs()->Get(input);
        if (static_cast<std::uint32_t>(port.tensor()) != each.tensor()) { continue; }
        is_chosen = is_itself(each.expression(), dimension);
        chosen = {dimension, input, port.permutation()->Get(each.axis()), each.expression()};
      }
    }
    if (chosen.expression < parts.size()) { found.push_back(chosen); }
  }
  return found;
}

void find_size(const Program& program, const SizeSource& source, std::int64_t length,
               std::vector<std::int64_t>& sizes, std::vector<std::int64_t>& values) {
  const auto& dimension =
      *program.dimensions()->Get(static_cast<flatbuffers::uoffset_t>(source.dimension));
  std::int64_t& size = sizes[source.dimension];
  std::uint64_t low = 0;  // in steps
  std::uint64_t high = (dimension.high() - dimension.low()) / dimension.step();
  while (true) {
    const std::uint64_t middle = low + (high - low) / 2;
    size = static_cast<std::int64_t>(dimension.low() + middle * dimension.step());
    evaluate(program, sizes, values);
    if (values[source.expression] == length) { return; }
    if (low == high) { break; }
    if (values[source.expression] < length) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const auto& port = *program.inputs()->Get(static_cast<flatbuffers::uoffset_t>(source.input));
  throw SizeRangeError("input " + quoted(port.name()) + " has the length " +
                       std::to_string(length) + " along axis " + std::to_string(source.axis) +
                       ", which no value of dimension " + quoted(dimension.name()) +
                       " gives; its range is " + range_of(dimension));
}

void evaluate(const Program& program, const std::vector<std::int64_t>& sizes,
              std::vector<std::int64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& each = *program.expressions()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (each.operation() == Arithmetic::constant) {
      values[i] = each.a();
      continue;
    }
    if (each.operation() == Arithmetic::dimension) {
      values[i] = sizes[static_cast<std::size_t>(each.a())];
      continue;
    }
    const std::int64_t a = values[static_cast<std::size_t>(each.a())];
    const std::int64_t b = values[static_cast<std::size_t>(each.b())];
    bool overflows = false;
    switch (each.operation()) {
      case Arithmetic::add: overflows = __builtin_add_overflow(a, b, &values[i]); break;
      case Arithmetic::multiply: overflows = __builtin_mul_overflow(a, b, &values[i]); break;
      case Arithmetic::divide: values[i] = quotient(a, b); break;
      case Arithmetic::maximum: values[i] = std::max(a, b); break;
      default: values[i] = std::min(a, b); break;
    }
    if (overflows) { refuse("an expression does not fit 64 bits at these sizes"); }
  }
}

}  // namespace arenite
