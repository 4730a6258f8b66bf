// Rows of floats as a cache of 8 bits keeps them.
#include "kernels/cache_rows.hpp"

#include "kernels/parallel.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

namespace {

class CacheRowsStep final : public Step {
 public:
  CacheRowsStep(const Operands& operands, std::size_t width)
      : source_(operands.inputs[0]->as<float>()),
        target_(operands.outputs[0]->data),
        width_(width),
        count_(operands.inputs[0]->num_elements() / width),
        threads_(operands.threads) {}

  void run() override {
    parallel(threads_, count_, 8 * width_, [this](std::size_t first, std::size_t count) {
      write_cache_rows(source_ + first * width_, count, width_,
                       target_ + first * cache_row_bytes(width_));
    });
  }

 private:
  const float* source_;
  std::byte* target_;
  std::size_t width_;
  std::size_t count_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_cache_rows(const Operands& operands) {
  require_arity(operands, 1, 1);
  const auto& source = *operands.inputs[0];
  const auto& result = *operands.outputs[0];
  const std::size_t width = operands.step.kernel_as_CacheRows()->width();
  require(operands,
          source.type == program::Type::float32 && result.type == program::Type::int8 &&
              !result.is_quantised(),
          "it makes plain int8 of float32");
  require(operands, source.rank() > 0 && source.rank() == result.rank(),
          "input and output differ in rank");
  require(operands, std::equal(source.shape.begin(), source.shape.end() - 1, result.shape.begin()),
          "input and output differ in their rows");
  const std::size_t columns = source.shape.back();
  require(operands, width > 0 && columns % width == 0, "its width does not divide its rows");
  require(operands, result.shape.back() == columns / width * cache_row_bytes(width),
          "its output does not have the bytes of its rows");
  require_apart(operands, &source);
  return std::make_unique<CacheRowsStep>(operands, width);
}

const Registration registered{program::Operator::CacheRows, make_cache_rows};

}  // namespace

}  // namespace arenite
