#include "bind_records.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

namespace nb = nanobind;

namespace arenite {
namespace {

std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  if (a > Records::kMostBytes - b) {
    throw std::overflow_error("the sizes add up to more than 2^62");
  }
  return a + b;
}

void check(const UsageRecord& record) {
  if (record.start < 0 || record.start >= record.end) {
    throw std::invalid_argument("a lifetime is empty or begins below 0");
  }
  if (record.size < 1) throw std::invalid_argument("a size is not positive");
  if (record.alignment < 1 || (record.alignment & (record.alignment - 1)) != 0) {
    throw std::invalid_argument("an alignment is not a power of two");
  }
  if (record.fixed < -1 || (record.fixed > 0 && record.fixed % record.alignment != 0)) {
    throw std::invalid_argument("a fixed offset is below 0 or unaligned");
  }
}

}  // namespace

Records::Records(const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& ends,
                 const std::vector<std::int64_t>& sizes,
                 const std::vector<std::int64_t>& alignments,
                 const std::vector<std::int64_t>& fixed) {
  const std::size_t count = starts.size();
  if (ends.size() != count || sizes.size() != count || alignments.size() != count ||
      fixed.size() != count) {
    throw std::invalid_argument("the lists differ in length");
  }
  all_.reserve(count);
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    all_.push_back({starts[i], ends[i], sizes[i], alignments[i], fixed[i]});
    check(all_.back());
    num_bytes_ = checked_sum(checked_sum(num_bytes_, sizes[i]), alignments[i]);
    highest = std::max(highest, fixed[i]);
  }
  num_bytes_ = checked_sum(num_bytes_, highest);
}

void bind_records(nb::module_& module) {
  nb::class_<Records>(module, "Records")
      .def(nb::init<const std::vector<std::int64_t>&, const std::vector<std::int64_t>&,
                    const std::vector<std::int64_t>&, const std::vector<std::int64_t>&,
                    const std::vector<std::int64_t>&>(),
           nb::arg("starts"), nb::arg("ends"), nb::arg("sizes"), nb::arg("alignments"),
           nb::arg("fixed"))
      .def("__len__", [](const Records& records) { return records.all().size(); });
}

}  // namespace arenite
