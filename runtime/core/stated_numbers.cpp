#include "stated_numbers.hpp"

#include <memory>
#include <string>
#include <type_traits>

#include "checking.hpp"
#include "objects_generated.h"

namespace arenite {

namespace {

using program::Operator;

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 40;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::size_t kMaxAxes = 16;
constexpr std::size_t kSides = 4;   // of a padding
constexpr std::size_t kWindow = 2;  // rows and columns
constexpr std::size_t kTiles = 2;   // Winograd's, and those of a tuned program

const std::uint8_t* field(const void* table, flatbuffers::voffset_t offset) {
  return static_cast<const flatbuffers::Table*>(table)->GetAddressOf(offset);
}

// Returns a copy of a table, which the schema describes in two namespaces, outside of any file.
template <typename Table, typename Given>
std::unique_ptr<typename Table::NativeTableType> unpacked(const Given* given) {
  const void* const table = given;
  return std::unique_ptr<typename Table::NativeTableType>(
      static_cast<const Table*>(table)->UnPack());
}

const flatbuffers::Vector<std::uint32_t>* padding_of(const program::Step& step) {
  switch (step.kernel_type()) {
    case Operator::Conv2D: return step.kernel_as_Conv2D()->padding();
    case Operator::DepthwiseConv2D: return step.kernel_as_DepthwiseConv2D()->padding();
    case Operator::TransposedConv2D: return step.kernel_as_TransposedConv2D()->padding();
    case Operator::Pool2D: return step.kernel_as_Pool2D()->padding();
    default: return nullptr;
  }
}

template <typename T>
const std::uint8_t* element(const flatbuffers::Vector<T>& vector, std::size_t index) {
  return vector.Data() + index * sizeof(T);
}

}  // namespace

StatedNumber::StatedNumber(const program::Step& step, std::uint32_t number) {
  const std::string label =
      "step " + quoted(step.name()) + " has no number " + std::to_string(number);
  const auto* copy = step.kernel_as_Copy();
  if (copy == nullptr) {
    const auto* pool = step.kernel_as_Pool2D();
    const auto* conv = step.kernel_as_Conv2D();
    if (conv != nullptr && number >= kSides) {
      if (number >= kSides + kTiles) { refuse(label); }
      kind_ = Kind::extent;
      place_ =
          field(conv, number == kSides ? program::Conv2D::VT_TILE : program::Conv2D::VT_TUNED_TILE);
      if (place_ == nullptr) { refuse(label + ": the file leaves it out"); }
      return;
    }
    const bool is_window = pool != nullptr && number >= kSides;
    const auto* list = is_window ? pool->window() : padding_of(step);
    const std::size_t index = is_window ? number - kSides : number;
    if (count(list) != (is_window ? kWindow : kSides) || index >= list->size()) { refuse(label); }
    kind_ = Kind::extent;
    is_padding_above_ = number == 0;
    place_ = element(*list, index);
    return;
  }
  std::size_t left = number;
  for (std::size_t i = 0; i < count(copy->moves()); ++i) {
    const auto& move = *copy->moves()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const std::size_t rank = count(move.shape());
    if (rank > kMaxAxes || count(move.input_strides()) != rank ||
        count(move.output_strides()) != rank) {
      refuse(label + ": a move has a shape without strides");
    }
    const std::size_t numbers = 3 * rank + 2;
    if (left >= numbers) {
      left -= numbers;
      continue;
    }
    const bool is_input = left < 2 * rank + 1;
    if (left < rank) {
      place_ = element(*move.shape(), left);
    } else if (left == rank) {
      place_ = field(&move, program::Move::VT_INPUT_START);
    } else if (is_input) {
      place_ = element(*move.input_strides(), left - rank - 1);
      kind_ = Kind::strides;
    } else if (left == 2 * rank + 1) {
      place_ = field(&move, program::Move::VT_OUTPUT_START);
    } else {
      place_ = element(*move.output_strides(), left - 2 * rank - 2);
      kind_ = Kind::strides;
    }
    if (place_ == nullptr) { refuse(label + ": the file leaves it out"); }
    return;
  }
  refuse(label);
}

void StatedNumber::write(std::int64_t value) const {
  const std::int64_t limit = kind_ == Kind::extent ? kMaxExtent : kMaxNumber;
  if (value >= limit || value < (kind_ == Kind::strides ? -limit : 0)) {
    refuse("a number of a step is " + std::to_string(value) + " at these sizes");
  }
  auto* const place = const_cast<std::uint8_t*>(place_);
  if (kind_ == Kind::extent) {
    flatbuffers::WriteScalar(place, static_cast<std::uint32_t>(value));
  } else {
    flatbuffers::WriteScalar(place, value);
  }
}

flatbuffers::DetachedBuffer copied_step(const program::Step& step) {
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  flatbuffers::Offset<void> kernel;
  switch (step.kernel_type()) {
    case Operator::Copy:
      kernel = CreateCopy(builder, unpacked<objects::Copy>(step.kernel_as_Copy()).get()).Union();
      break;
    case Operator::Conv2D:
      kernel =
          CreateConv2D(builder, unpacked<objects::Conv2D>(step.kernel_as_Conv2D()).get()).Union();
      break;
    case Operator::DepthwiseConv2D:
      kernel =
          CreateDepthwiseConv2D(
              builder, unpacked<objects::DepthwiseConv2D>(step.kernel_as_DepthwiseConv2D()).get())
              .Union();
      break;
    case Operator::TransposedConv2D:
      kernel =
          CreateTransposedConv2D(
              builder, unpacked<objects::TransposedConv2D>(step.kernel_as_TransposedConv2D()).get())
              .Union();
      break;
    default:
      kernel =
          CreatePool2D(builder, unpacked<objects::Pool2D>(step.kernel_as_Pool2D()).get()).Union();
      break;
  }
  const auto name = builder.CreateString(step.name());
  const auto list = [&builder](const auto* given) {
    using Item = std::decay_t<decltype(given->Get(0))>;
    return given == nullptr ? flatbuffers::Offset<flatbuffers::Vector<Item>>()
                            : builder.CreateVector(given->data(), given->size());
  };
  const auto inputs = list(step.inputs());
  const auto outputs = list(step.outputs());
  const auto awaits = list(step.awaits());
  builder.Finish(program::CreateStep(builder, name, step.kernel_type(), kernel, inputs, outputs,
                                     step.scratch(), step.lane(), awaits));
  return builder.Release();
}

std::size_t copied_bytes(const program::Step& step, std::size_t most) {
  std::size_t bytes = step.name()->size() +
                      4 * (count(step.inputs()) + count(step.outputs()) + count(step.awaits()));
  const auto add = [&bytes](const auto* numbers) { bytes += 8 * count(numbers); };
  if (const auto* copy = step.kernel_as_Copy()) {
    add(copy->fill());
    for (std::size_t i = 0; i < count(copy->moves()) && bytes <= most; ++i) {
      const auto& move = *copy->moves()->Get(static_cast<flatbuffers::uoffset_t>(i));
      bytes += sizeof(objects::MoveT);
      add(move.shape());
      add(move.input_strides());
      add(move.output_strides());
    }
  } else if (const auto* conv = step.kernel_as_Conv2D()) {
    for (const auto* list : {conv->strides(), conv->dilations(), conv->kernel()}) { add(list); }
  } else if (const auto* depthwise = step.kernel_as_DepthwiseConv2D()) {
    for (const auto* list : {depthwise->strides(), depthwise->dilations()}) { add(list); }
  } else if (const auto* transposed = step.kernel_as_TransposedConv2D()) {
    for (const auto* list :
         {transposed->strides(), transposed->dilations(), transposed->adjustment()}) {
      add(list);
    }
  } else if (const auto* pool = step.kernel_as_Pool2D()) {
    for (const auto* list : {pool->strides(), pool->dilations(), pool->padding(), pool->window()}) {
      add(list);
    }
  }
  return bytes;
}

}  // namespace arenite
