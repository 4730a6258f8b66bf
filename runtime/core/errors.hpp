// The errors of program files and sessions.
#pragma once

#include <stdexcept>
#include <string>

namespace arenite {

// The file is not a program, is damaged, or is invalid.
class ProgramError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A program file of a version that this runtime does not read.
class VersionError : public ProgramError {
 public:
  using ProgramError::ProgramError;
};

// An index that a step reads lies beyond its axis.
class IndexError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A size is outside of the range of its dimension.
class SizeRangeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// States hold as many rows as a run can take, or more.
class StatesFullError : public SizeRangeError {
 public:
  using SizeRangeError::SizeRangeError;
};

// Saved states are damaged, or those of another program.
class StatesError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A stage of a system would overwrite what another needs, or reads what is not there.
class StageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The operating system denies memory or a file.
class SystemError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A temporary file could not be written or read during a run.
class SpillError : public SystemError {
 public:
  using SystemError::SystemError;
};

// A session with threads is used after fork(), in a process without those threads.
class ForkedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace arenite
