// The name of the processor, for which kernels of a program may have been tuned.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace arenite {

// The name that the system states for its first core, or else for the board. Different processors
// may share a name, and virtual machines make up names; the name affects only
// speed.
//
// It allocates nothing, so that the memory of a session does not depend on it.
class ProcessorName {
 public:
  ProcessorName();
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 4096> text_;  // first what a file says, then the name
  std::size_t size_ = 0;
};

// The name in a text like that of /proc/cpuinfo; empty if there is none.
std::string_view stated_model(std::string_view cpuinfo);

}  // namespace arenite
