#include "node.hpp"

#include <malloc.h>
#include <pthreadpool.h>

#include <atomic>
#include <cstdlib>

#include "../errors.hpp"

namespace arenite::xnnpack {

namespace {

constexpr std::uint32_t kMaxExternals = 8;

std::atomic<std::int64_t> num_allocations{0};
thread_local std::size_t bytes_held = 0;  // wraps where another thread frees

void* counted(void* pointer) {
  ++num_allocations;
  bytes_held += malloc_usable_size(pointer);
  return pointer;
}

void* allocate(void*, std::size_t size) { return counted(std::malloc(size)); }

void* reallocate(void*, void* pointer, std::size_t size) {
  bytes_held -= malloc_usable_size(pointer);
  return counted(std::realloc(pointer, size));
}

void deallocate(void*, void* pointer) {
  bytes_held -= malloc_usable_size(pointer);
  std::free(pointer);
}

void* aligned_allocate(void*, std::size_t alignment, std::size_t size) {
  return counted(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
}

void initialise() {
  static const xnn_status status = [] {
    static const xnn_allocator allocator{nullptr,    allocate,         reallocate,
                                         deallocate, aligned_allocate, deallocate};
    return xnn_initialize(&allocator);
  }();
  if (status != xnn_status_success) {
    throw SystemError("XNNPACK does not run on this processor: status " + std::to_string(status));
  }
}

class NodeStep final : public Step {
 public:
  NodeStep(xnn_runtime_t runtime, bool packs_constants)
      : runtime_(runtime), packs_constants_(packs_constants) {}
  ~NodeStep() override { xnn_delete_runtime(runtime_); }

  void run() override { xnn_invoke_runtime(runtime_); }
  const char* backend() const override { return "xnnpack"; }
  bool has_packed(std::size_t) const override { return packs_constants_; }
  std::size_t held_bytes() const override { return held_bytes_; }
  void set_held_bytes(std::size_t bytes) { held_bytes_ = bytes; }

 private:
  xnn_runtime_t runtime_;
  std::size_t held_bytes_ = 0;
  bool packs_constants_;
};

// The other threads sleep after every step. Spinning is an eighth faster on an idle machine, and
// many times slower if another process needs the core.
std::uint32_t runtime_flags(const Operands& operands) {
  if (operands.threads == nullptr) { return 0; }
#ifdef XNN_FLAG_DONT_SPIN_WORKERS
  return XNN_FLAG_DONT_SPIN_WORKERS;
#else
  return XNN_FLAG_YIELD_WORKERS;
#endif
}

}  // namespace

std::int64_t allocations() { return num_allocations; }

Node::Node(const Operands& operands) : operands_(operands) {
  initialise();
  require(xnn_create_subgraph(kMaxExternals, 0, &graph_));
}

Node::~Node() {
  if (graph_ != nullptr) { xnn_delete_subgraph(graph_); }
}

void Node::require(xnn_status status) {
  if (status == xnn_status_out_of_memory) {
    throw SystemError("no memory for step '" + operands_.step.name()->str() + "'");
  }
  is_refused_ = is_refused_ || status != xnn_status_success;
}

std::uint32_t Node::define(const TensorView& view, const std::vector<std::size_t>& shape,
                           const void* data, std::uint32_t external_id, std::uint32_t flags) {
  std::uint32_t id = XNN_INVALID_VALUE_ID;
  if (view.type == program::Type::float32) {
    require(xnn_define_tensor_value(graph_, xnn_datatype_fp32, shape.size(), shape.data(), data,
                                    external_id, flags, &id));
    return id;
  }
  const bool is_signed = view.type == program::Type::int8;
  if ((!is_signed && view.type != program::Type::uint8) || !view.is_quantised()) {
    is_refused_ = true;
    return id;
  }
  if (view.scales.size() > 1) {
    if (!is_signed || view.zero_point != 0) {
      is_refused_ = true;
      return id;
    }
    require(xnn_define_channelwise_quantized_tensor_value(
        graph_, xnn_datatype_qcint8, view.scales.data(), shape.size(), view.axis, shape.data(),
        data, external_id, flags, &id));
    return id;
  }
  require(xnn_define_quantized_tensor_value(
      graph_, is_signed ? xnn_datatype_qint8 : xnn_datatype_quint8, view.zero_point, view.scales[0],
      shape.size(), shape.data(), data, external_id, flags, &id));
  return id;
}

std::uint32_t Node::external(const TensorView& view, const std::vector<std::size_t>& shape,
                             std::uint32_t flags) {
  const auto id = static_cast<std::uint32_t>(externals_.size());
  externals_.push_back({id, view.data});
  return define(view, shape, nullptr, id, flags);
}

std::uint32_t Node::input(const TensorView& view, const std::vector<std::size_t>& shape) {
  return external(view, shape, XNN_VALUE_FLAG_EXTERNAL_INPUT);
}

std::uint32_t Node::output(const TensorView& view, const std::vector<std::size_t>& shape) {
  return external(view, shape, XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
}

std::uint32_t Node::constant(const TensorView& view, const std::vector<std::size_t>& shape) {
  return define(view, shape, view.data, XNN_INVALID_VALUE_ID, 0);
}

std::uint32_t Node::bias(const TensorView* view, const TensorView& source,
                         const TensorView& filter) {
  if (view == nullptr) { return XNN_INVALID_VALUE_ID; }
  if (view->type == program::Type::float32) { return constant(*view); }
  std::uint32_t id = XNN_INVALID_VALUE_ID;
  if (view->type != program::Type::int32 || !source.is_quantised() || !filter.is_quantised()) {
    is_refused_ = true;
    return id;
  }
  for (const float scale : filter.scales) { bias_scales_.push_back(scale * source.scales[0]); }
  if (bias_scales_.size() > 1) {
    require(xnn_define_channelwise_quantized_tensor_value(
        graph_, xnn_datatype_qcint32, bias_scales_.data(), view->shape.size(), 0,
        view->shape.data(), view->data, XNN_INVALID_VALUE_ID, 0, &id));
  } else {
    require(xnn_define_quantized_tensor_value(graph_, xnn_datatype_qint32, 0, bias_scales_[0],
                                              view->shape.size(), view->shape.data(), view->data,
                                              XNN_INVALID_VALUE_ID, 0, &id));
  }
  return id;
}

std::unique_ptr<Step> Node::make(xnn_status status, bool packs_constants) {
  require(status);
  if (is_refused_) { return nullptr; }
  xnn_runtime_t runtime = nullptr;
  const std::size_t held_before = bytes_held;
  status = xnn_create_runtime_v2(graph_, operands_.threads, runtime_flags(operands_), &runtime);
  require(status);
  if (status != xnn_status_success) { return nullptr; }
  auto step = std::make_unique<NodeStep>(runtime, packs_constants);
#ifdef ARENITE_HAVE_XNN_RESHAPE_RUNTIME
  status = xnn_reshape_runtime(runtime);
  if (status == xnn_status_success) {
    status = xnn_setup_runtime_v2(runtime, externals_.size(), externals_.data());
  }
#else
  status = xnn_setup_runtime(runtime, externals_.size(), externals_.data());
#endif
  require(status);
  step->set_held_bytes(bytes_held - held_before);
  return status == xnn_status_success ? std::move(step) : nullptr;
}

}  // namespace arenite::xnnpack
