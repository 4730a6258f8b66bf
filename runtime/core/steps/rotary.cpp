// Rotary positions: pairs of elements of each head turned by an angle of their place.
#include "kernels/parallel.hpp"
#include "kernels/processor.hpp"
#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/by_rows.hpp"

namespace arenite {

namespace {

constexpr std::size_t kCosines = 1;
constexpr std::size_t kSines = 2;

class RotaryStep final : public Step {
 public:
  RotaryStep(const Operands& operands, std::size_t heads, bool is_interleaved)
      : source_(as_rows<const float>(*operands.inputs[0])),
        cosines_(as_rows<const float>(*operands.inputs[kCosines])),
        sines_(as_rows<const float>(*operands.inputs[kSines])),
        target_(as_rows<float>(*operands.outputs[0])),
        num_batches_(operands.inputs[0]->shape[0]),
        heads_(heads),
        has_angles_of_batches_(operands.inputs[kCosines]->shape[0] != 1),
        is_interleaved_(is_interleaved),
        has_rows_(is_one_image(*operands.inputs[0])),
        threads_(operands.threads) {}

  void run() override {
    for (std::size_t batch = 0; batch < num_batches_; ++batch) { make(batch, {0, source_.rows}); }
  }

  bool makes_rows() const override { return has_rows_; }
  bool finds_rows(std::size_t) const override { return has_rows_; }
  void run_rows(RowRange rows) override { make(0, rows); }

 private:
  // Rows that lie anywhere are of one batch.
  void make(std::size_t batch, RowRange rows) const {
    const std::size_t at = batch * source_.rows;
    const std::size_t angles = has_angles_of_batches_ ? at : 0;
    parallel(threads_, rows.count, 4 * source_.channels, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = rows.first + first; i < rows.first + first + count; ++i) {
        rotate(source_.row(at + i), cosines_.row(angles + i), sines_.row(angles + i),
               target_.row(at + i));
      }
    });
  }

  void rotate(const float* from, const float* cosines, const float* sines, float* to) const {
    const std::size_t pairs = cosines_.channels;
    const std::size_t size = source_.channels / heads_;
    const std::size_t step = is_interleaved_ ? 2 : 1;
    const std::size_t other = is_interleaved_ ? 1 : pairs;
    with_widest_vectors([=, heads = heads_] {
      for (std::size_t head = 0; head < heads; ++head) {
        const float* x = from + head * size;
        float* y = to + head * size;
        for (std::size_t i = 0; i < pairs; ++i) {
          const float one = x[i * step];
          const float two = x[i * step + other];
          y[i * step] = cosines[i] * one - sines[i] * two;
          y[i * step + other] = sines[i] * one + cosines[i] * two;
        }
        for (std::size_t i = 2 * pairs; i < size; ++i) { y[i] = x[i]; }
      }
    });
  }

  Image<const float> source_;
  Image<const float> cosines_;
  Image<const float> sines_;
  Image<float> target_;
  std::size_t num_batches_;
  std::size_t heads_;
  bool has_angles_of_batches_;
  bool is_interleaved_;
  bool has_rows_;
  pthreadpool_t threads_;
};

std::unique_ptr<Step> make_rotary(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_Rotary();
  require_arity(operands, 3, 3);
  require_floats(operands);
  const auto& source = *operands.inputs[0];
  const auto& cosines = *operands.inputs[kCosines];
  const auto& sines = *operands.inputs[kSines];
  const std::size_t heads = attributes.heads();
  require(operands, source.rank() == 3 && source.shape == operands.outputs[0]->shape,
          "input and output differ, or do not have 3 axes");
  require(operands, heads > 0 && source.shape[2] % heads == 0,
          "its heads do not divide its elements");
  require(operands, cosines.rank() == 3 && cosines.shape == sines.shape,
          "its cosines and sines differ, or do not have 3 axes");
  require(operands, cosines.shape[0] == 1 || cosines.shape[0] == source.shape[0],
          "its angles are of other batches");
  require(operands, cosines.shape[1] == source.shape[1], "its angles are of other places");
  require(operands, cosines.shape[2] <= source.shape[2] / heads / 2,
          "it has more angles than pairs of elements");
  require_apart(operands, &cosines);
  require_apart(operands, &sines);
  return std::make_unique<RotaryStep>(operands, heads, attributes.interleaved());
}

const Registration registered{program::Operator::Rotary, make_rotary};

}  // namespace

}  // namespace arenite
