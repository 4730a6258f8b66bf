#include "processor_name.hpp"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

namespace arenite {

namespace {

constexpr std::string_view kBlanks{" \t\r\n\0", 5};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) { return {}; }
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

// The beginning of a file; nothing if it cannot be read.
std::string_view beginning(const char* path, std::array<char, 4096>& buffer) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) { return {}; }
  const auto count = read(descriptor, buffer.data(), buffer.size());
  close(descriptor);
  return {buffer.data(), count < 0 ? 0 : static_cast<std::size_t>(count)};
}

}  // namespace

std::string_view stated_model(std::string_view cpuinfo) {
  while (!cpuinfo.empty()) {
    const auto line = cpuinfo.substr(0, cpuinfo.find('\n'));
    cpuinfo.remove_prefix(std::min(line.size() + 1, cpuinfo.size()));
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == "model name") {
      return trimmed(line.substr(colon + 1));
    }
  }
  return {};
}

ProcessorName::ProcessorName() {
  std::string_view found = stated_model(beginning("/proc/cpuinfo", text_));
  if (found.empty()) { found = trimmed(beginning("/sys/firmware/devicetree/base/model", text_)); }
  utsname system{};
  if (found.empty() && uname(&system) == 0) { found = system.machine; }
  size_ = found.size();
  std::copy(found.begin(), found.end(), text_.begin());
}

}  // namespace arenite
