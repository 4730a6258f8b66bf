// The name of the processor, for which kernels of a program may have been tuned.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace arenite {

// What the system states of its first core, or of the board where it says nothing of cores. Two
// processors may have the same name, and virtual machines give names of their own; nothing but
// speed follows from it.
//
// It takes nothing from the heap, so that what a session holds does not depend on it.
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
