// Helpers of the checks of a program file.
#pragma once

#include <cstddef>
#include <string>

#include "errors.hpp"
#include "program_generated.h"

namespace arenite {

[[noreturn]] inline void refuse(const std::string& reason) { throw ProgramError(reason); }

inline std::string quoted(const flatbuffers::String* name) { return "'" + name->str() + "'"; }

// The length of a vector; an absent one has 0.
template <typename T>
std::size_t count(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

}  // namespace arenite
