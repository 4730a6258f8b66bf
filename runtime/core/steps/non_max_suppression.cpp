// Selects the best boxes that do not overlap a better one, as ONNX and TensorFlow Lite do.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/box.hpp"

namespace arenite {

namespace {

using program::Type;

struct Candidate {
  float score;
  std::uint32_t box;
  std::uint32_t compared;  // with so many of the selected boxes
};

class SuppressionStep : public Step {
 public:
  SuppressionStep(const Operands& operands, std::size_t num_boxes)
      : attributes_(*operands.step.kernel_as_NonMaxSuppression()),
        boxes_(operands.inputs[0]->as<float>()),
        scores_(operands.inputs[1]->as<float>()),
        num_boxes_(num_boxes),
        candidates_(require_scratch_of<Candidate>(operands, num_boxes)) {}

 protected:
  // A box as two opposite corners, or as its centre with width and height.
  Box box_at(const float* box) const {
    if (attributes_.by_centre()) {
      const float half[2] = {box[2] / 2, box[3] / 2};
      return {{box[0] - half[0], box[1] - half[1]}, {box[0] + half[0], box[1] + half[1]}};
    }
    return {{std::min(box[0], box[2]), std::min(box[1], box[3])},
            {std::max(box[0], box[2]), std::max(box[1], box[3])}};
  }

  // 0 also for a box with NaN.
  static float overlap(const Box& a, const Box& b) {
    return a.meets(b) && a.area() > 0 && b.area() > 0 ? a.overlap(b) : 0.0f;
  }

  // Takes the boxes whose score is above the threshold, and counts them. A threshold of minus
  // infinity takes all; NaN is never taken, as it has no place in an order.
  std::size_t take(const float* scores) const {
    const float threshold = attributes_.score_threshold();
    std::size_t count = 0;
    for (std::size_t i = 0; i < num_boxes_; ++i) {
      if (scores[i] > threshold || (threshold == -INFINITY && scores[i] == threshold)) {
        candidates_[count++] = {scores[i], static_cast<std::uint32_t>(i), 0};
      }
    }
    return count;
  }

  const program::NonMaxSuppression& attributes_;
  const float* boxes_;
  const float* scores_;
  std::size_t num_boxes_;
  Candidate* candidates_;  // working memory
};

// ONNX: rows of image, class and box, for each class of each image, and counts them.
class OfClassesStep final : public SuppressionStep {
 public:
  OfClassesStep(const Operands& operands, std::size_t num_boxes)
      : SuppressionStep(operands, num_boxes),
        num_images_(operands.inputs[1]->shape[0]),
        num_classes_(operands.inputs[1]->shape[1]),
        rows_(operands.outputs[0]->as<std::int64_t>()) {}

  void run() override {
    std::int64_t* row = rows_;
    for (std::size_t image = 0; image < num_images_; ++image) {
      const float* boxes = boxes_ + image * num_boxes_ * 4;
      for (std::size_t each = 0; each < num_classes_; ++each) {
        const float* scores = scores_ + (image * num_classes_ + each) * num_boxes_;
        const std::size_t count = take(scores);
        std::sort(candidates_, candidates_ + count, [](const Candidate& a, const Candidate& b) {
          return a.score != b.score ? a.score > b.score : a.box < b.box;
        });
        const std::int64_t* first = row;
        const std::size_t most = attributes_.max_outputs();
        for (std::size_t i = 0; i < count && static_cast<std::size_t>(row - first) < 3 * most;
             ++i) {
          if (is_free(boxes, first, row, candidates_[i].box)) {
            *row++ = static_cast<std::int64_t>(image);
            *row++ = static_cast<std::int64_t>(each);
            *row++ = candidates_[i].box;
          }
        }
      }
    }
    count_ = static_cast<std::size_t>(row - rows_) / 3;
  }

  std::size_t count() const override { return count_; }

 private:
  bool is_free(const float* boxes, const std::int64_t* first, const std::int64_t* last,
               std::size_t box) const {
    const Box one = box_at(boxes + 4 * box);
    const float most = attributes_.overlap_threshold();
    for (const std::int64_t* row = first; row < last; row += 3) {
      if (overlap(one, box_at(boxes + 4 * row[2])) > most) { return false; }
    }
    return true;
  }

  std::size_t num_images_;
  std::size_t num_classes_;
  std::int64_t* rows_;
  std::size_t count_ = 0;
};

// TensorFlow Lite: boxes, the scores that they have then, and how many there are; all else is 0.
// With a sigma, a box that overlaps one before it loses a part of its score.
class OfOneClassStep final : public SuppressionStep {
 public:
  OfOneClassStep(const Operands& operands, std::size_t num_boxes)
      : SuppressionStep(operands, num_boxes),
        selected_(operands.outputs[0]->as<std::int32_t>()),
        num_rows_(operands.outputs[0]->shape[0]),
        count_(operands.outputs[1]->as<std::int32_t>()),
        kept_(operands.outputs.size() > 2 ? operands.outputs[2]->as<float>() : nullptr) {}

  void run() override {
    const auto is_below = [](const Candidate& a, const Candidate& b) {
      return a.score != b.score ? a.score < b.score : a.box > b.box;
    };
    std::size_t waiting = take(scores_);
    const std::size_t most = std::min(waiting, num_rows_);
    std::make_heap(candidates_, candidates_ + waiting, is_below);
    std::size_t count = 0;
    while (count < most && waiting > 0) {
      std::pop_heap(candidates_, candidates_ + waiting, is_below);
      Candidate& best = candidates_[--waiting];
      const float before = best.score;
      const bool is_suppressed = compare(best, count);
      best.compared = static_cast<std::uint32_t>(count);
      if (is_suppressed) { continue; }
      if (best.score == before) {
        selected_[count] = static_cast<std::int32_t>(best.box);
        if (kept_ != nullptr) { kept_[count] = best.score; }
        ++count;
      }
      // A box that was selected waits again too, and then meets itself.
      if (best.score > attributes_.score_threshold()) {
        std::push_heap(candidates_, candidates_ + ++waiting, is_below);
      }
    }
    *count_ = static_cast<std::int32_t>(count);
    std::fill(selected_ + count, selected_ + num_rows_, 0);
    if (kept_ != nullptr) { std::fill(kept_ + count, kept_ + num_rows_, 0.0f); }
  }

 private:
  // Lowers the score of a box by those selected since it was last compared; whether one of them
  // overlaps it too much.
  bool compare(Candidate& box, std::size_t count) const {
    const float sigma = attributes_.sigma();
    const float scale = sigma > 0 ? -0.5f / sigma : 0.0f;
    const Box one = box_at(boxes_ + 4 * box.box);
    for (std::size_t i = count; i-- > box.compared;) {
      const float shared = overlap(one, box_at(boxes_ + 4 * selected_[i]));
      if (shared >= attributes_.overlap_threshold()) { return true; }
      if (sigma > 0) { box.score *= std::exp(scale * shared * shared); }
      if (box.score <= attributes_.score_threshold()) { break; }
    }
    return false;
  }

  std::int32_t* selected_;
  std::size_t num_rows_;
  std::int32_t* count_;
  float* kept_;  // null: nobody asks for scores
};

std::unique_ptr<Step> make_suppression(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_NonMaxSuppression();
  require_arity(operands, 2, 2, 3);
  const auto& boxes = *operands.inputs[0];
  const auto& scores = *operands.inputs[1];
  const auto& selected = *operands.outputs[0];
  require(operands, boxes.type == Type::float32 && scores.type == Type::float32,
          "only float32 is supported");
  require(operands, boxes.rank() >= 2 && boxes.shape.back() == 4, "its boxes must have 4 numbers");
  const std::size_t num_boxes = boxes.shape[boxes.rank() - 2];
  require(operands, num_boxes < (1u << 31), "it has too many boxes");
  require(operands, scores.rank() > 0 && scores.shape.back() == num_boxes,
          "boxes and scores do not fit");
  require(operands,
          !std::isnan(attributes.score_threshold()) &&
              !std::isnan(attributes.overlap_threshold()) && !std::isnan(attributes.sigma()),
          "a threshold is no number");
  if (selected.type == Type::int64) {
    require(operands,
            operands.outputs.size() == 1 && selected.rank() == 2 && selected.shape[1] == 3 &&
                attributes.sigma() == 0,
            "its output must be rows of three");
    require(operands, boxes.rank() == 3 && scores.rank() == 3 && boxes.shape[0] == scores.shape[0],
            "boxes and scores do not fit");
    const std::size_t most = std::min<std::size_t>(attributes.max_outputs(), num_boxes);
    require(operands, selected.shape[0] >= scores.shape[0] * scores.shape[1] * most,
            "its output does not have a row for each box that it may select");
    return std::make_unique<OfClassesStep>(operands, num_boxes);
  }
  require(operands, boxes.rank() == 2 && scores.rank() == 1, "boxes and scores do not fit");
  require(operands, !attributes.by_centre() && operands.outputs.size() > 1,
          "it has no output for the count");
  const auto& count = *operands.outputs[1];
  require(operands,
          selected.type == Type::int32 && selected.rank() == 1 &&
              selected.shape[0] == attributes.max_outputs() && count.type == Type::int32 &&
              count.num_elements() == 1,
          "its outputs do not have an index for each box that it may select, and their count");
  if (operands.outputs.size() > 2) {
    const auto& kept = *operands.outputs[2];
    require(operands, kept.type == Type::float32 && kept.shape == selected.shape,
            "its output of scores does not fit");
  }
  return std::make_unique<OfOneClassStep>(operands, num_boxes);
}

const Registration registered{program::Operator::NonMaxSuppression, make_suppression};

}  // namespace

}  // namespace arenite
