// Programs to and from JSON, as the Python module `arenite.runtime._schema`.
//
// A separate module, because only this one needs the FlatBuffers library.
#include <flatbuffers/idl.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>

#include "program_generated.h"
#include "program_schema.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace arenite {

namespace {

// Knows the schema, and no other spelling of JSON than the strict one.
class Parser : public flatbuffers::Parser {
 public:
  explicit Parser(bool keeps_defaults = false) : flatbuffers::Parser(options(keeps_defaults)) {
    if (!Parse(kProgramSchema)) {
      throw std::runtime_error("the schema of programs cannot be parsed: " + error_);
    }
  }

 private:
  static flatbuffers::IDLOptions options(bool keeps_defaults) {
    flatbuffers::IDLOptions options;
    options.strict_json = true;
    options.output_default_scalars_in_json = true;
    options.force_defaults = keeps_defaults;
    return options;
  }
};

nb::bytes encode(const std::string& json, bool keeps_defaults) {
  Parser schema(keeps_defaults);
  if (!schema.ParseJson(json.c_str())) {
    throw nb::value_error(("not a program: " + schema.error_).c_str());
  }
  const auto& builder = schema.builder_;
  return nb::bytes(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

std::string decode(const nb::bytes& data) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.c_str());
  flatbuffers::Verifier verifier(bytes, data.size());
  if (data.size() < 8 || !program::ProgramBufferHasIdentifier(bytes) ||
      !program::VerifyProgramBuffer(verifier)) {
    throw nb::value_error("the program is damaged: an offset leads outside it");
  }
  // Sound to the verifier, but writing the text of one ends the process.
  for (const auto* step : *program::GetProgram(bytes)->steps()) {
    if (step->kernel_type() == program::Operator::NONE) {
      throw nb::value_error("the program is damaged: a step has no operator");
    }
  }
  Parser schema;
  std::string text;
#if FLATBUFFERS_VERSION_MAJOR >= 23
  const bool is_written = flatbuffers::GenText(schema, bytes, &text) == nullptr;
#else
  const bool is_written = flatbuffers::GenerateText(schema, bytes, &text);
#endif
  if (!is_written) { throw nb::value_error("the program cannot be written as text"); }
  return text;
}

}  // namespace

NB_MODULE(_schema, module) {
  module.def("encode", &encode, "json"_a, "keeps_defaults"_a = false);
  module.def("decode", &decode, "data"_a);
}

}  // namespace arenite
