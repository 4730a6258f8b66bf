// What can be wrong with a program file.
#pragma once

#include <stdexcept>
#include <string>

namespace arenite {

// The file is not a program, is damaged, or asks for what it cannot have.
class ProgramError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A program file of a version that this runtime does not read.
class VersionError : public ProgramError {
 public:
  using ProgramError::ProgramError;
};

// The operating system refuses memory or a file.
class SystemError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The device of a temporary file cannot write or read in a run.
class SpillError : public SystemError {
 public:
  using SystemError::SystemError;
};

// A session with threads is used in a child process, which has the memory and not the threads.
class ForkedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace arenite
