#include "program_text.hpp"

#include <cstdint>

#include "errors.hpp"
#include "utf8.hpp"

namespace arenite {

namespace {

using program::Program;

void check_text(const flatbuffers::String* text) {
  if (text != nullptr && !is_utf8({text->c_str(), text->size()})) {
    throw ProgramError("a name is not UTF-8 text");
  }
}

template <typename T>
void check_names(const flatbuffers::Vector<flatbuffers::Offset<T>>* named) {
  if (named != nullptr) {
    for (const auto* each : *named) { check_text(each->name()); }
  }
}

// FlatBuffers' verifier does not look where the elements of a vector lie. Without elements they
// may lie anywhere.
template <typename T>
void check_aligned(const flatbuffers::Vector<T>* vector) {
  if (vector != nullptr && vector->size() != 0 &&
      reinterpret_cast<std::uintptr_t>(vector->Data()) % sizeof(T) != 0) {
    throw ProgramError("the program is damaged: a list of numbers is not aligned");
  }
}

void check_alignment(const Program& program) {
  if (const auto* expressions = program.expressions();
      expressions != nullptr && expressions->size() != 0 &&
      reinterpret_cast<std::uintptr_t>(expressions->Data()) % alignof(program::Expression) != 0) {
    throw ProgramError("the program is damaged: a list of expressions is not aligned");
  }
  for (const auto* tensor : *program.tensors()) {
    check_aligned(tensor->shape());
    check_aligned(tensor->rows());
  }
  for (const auto* ports : {program.inputs(), program.outputs()}) {
    for (const auto* port : *ports) { check_aligned(port->shape()); }
  }
  for (const auto* step : *program.steps()) {
    const auto* copy = step->kernel_as_Copy();
    if (copy == nullptr || copy->moves() == nullptr) { continue; }
    for (const auto* move : *copy->moves()) {
      check_aligned(move->shape());
      check_aligned(move->input_strides());
      check_aligned(move->output_strides());
    }
  }
}

void check_all_names(const Program& program) {
  check_text(program.name());
  check_text(program.digest());
  check_text(program.producer());
  check_text(program.tuned_on());
  check_names(program.tensors());
  check_names(program.steps());
  check_names(program.inputs());
  check_names(program.outputs());
  check_names(program.owners());
  check_names(program.memories());
  check_names(program.dimensions());
  check_names(program.stages());
  for (const auto* step : *program.steps()) {
    const auto* external = step->kernel_as_External();
    if (external == nullptr) { continue; }
    check_text(external->runtime());
    for (const auto* names : {external->input_names(), external->output_names()}) {
      if (names != nullptr) {
        for (const auto* name : *names) { check_text(name); }
      }
    }
  }
}

}  // namespace

void check_text_and_alignment(const Program& program) {
  check_alignment(program);
  check_all_names(program);
}

}  // namespace arenite
