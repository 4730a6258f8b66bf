// Decodes the boxes of a detector and suppresses those that overlap a better one, as TensorFlow
// Lite's custom operator does. Of equal scores the first one wins.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "operand_checks.hpp"
#include "registry.hpp"
#include "steps/box.hpp"

namespace arenite {

namespace {

struct Detection {
  float score;
  std::uint32_t place;  // box * classes + class
};

struct Sizes {
  std::size_t boxes;
  std::size_t coding;   // numbers that code a box; the first four are its place
  std::size_t columns;  // classes with the background, if that has a score
  std::size_t classes;
  std::size_t detections;
  std::size_t each;      // classes that a detection shows
  std::size_t of_class;  // detections of a class, where each is suppressed alone

  std::size_t background() const { return columns - classes; }
};

class DetectionStep final : public Step {
 public:
  DetectionStep(const Operands& operands, const Sizes& sizes)
      : sizes_(sizes),
        attributes_(*operands.step.kernel_as_DetectionPostProcess()),
        codes_(operands.inputs[0]->as<float>()),
        predictions_(operands.inputs[1]->as<float>()),
        anchors_(operands.inputs[2]->as<float>()) {
    for (std::size_t i = 0; i < 4; ++i) {
      targets_[i] = operands.outputs[i]->as<float>();
      scales_[i] = attributes_.scales()->Get(static_cast<flatbuffers::uoffset_t>(i));
    }
    const std::size_t marks = std::max(sizes.boxes, sizes.columns);
    std::byte* scratch = require_scratch(
        operands, sizes.boxes * (sizeof(Box) + sizeof(float) + sizeof(std::uint32_t)) +
                      2 * sizes.detections * sizeof(Detection) + marks);
    const auto take = [&](auto*& part, std::size_t count) {
      part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(scratch);
      scratch += count * sizeof(*part);
    };
    take(boxes_, sizes.boxes);
    take(scores_, sizes.boxes);
    take(order_, sizes.boxes);
    take(found_, sizes.detections);
    take(merged_, sizes.detections);
    take(marks_, marks);
  }

  void run() override {
    decode();
    const std::size_t rows = sizes_.detections * sizes_.each;
    std::fill(targets_[0], targets_[0] + 4 * rows, 0.0f);
    std::fill(targets_[1], targets_[1] + rows, 0.0f);
    std::fill(targets_[2], targets_[2] + rows, 0.0f);
    targets_[3][0] = static_cast<float>(attributes_.by_class() ? class_by_class() : all_at_once());
  }

 private:
  // Computes in doubles and rounds each centre and half length.
  void decode() const {
    for (std::size_t i = 0; i < sizes_.boxes; ++i) {
      const float* code = codes_ + i * sizes_.coding;
      const float* anchor = anchors_ + 4 * i;  // centre, then height and width
      float centre[2];
      float half[2];
      for (std::size_t axis = 0; axis < 2; ++axis) {
        const double length = anchor[2 + axis];
        centre[axis] =
            static_cast<float>(double{code[axis]} / scales_[axis] * length + double{anchor[axis]});
        half[axis] =
            static_cast<float>(0.5 * std::exp(double{code[2 + axis]} / scales_[2 + axis]) * length);
      }
      boxes_[i] = {{centre[0] - half[0], centre[1] - half[1]},
                   {centre[0] + half[0], centre[1] + half[1]}};
    }
  }

  const float* row(std::size_t box) const {
    return predictions_ + box * sizes_.columns + sizes_.background();
  }

  // Moves the boxes that stay to the front of `order_`, the best first, and counts them.
  std::size_t suppress(std::size_t most) const {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sizes_.boxes; ++i) {
      if (scores_[i] >= attributes_.score_threshold()) {  // never of NaN
        order_[kept++] = static_cast<std::uint32_t>(i);
      }
    }
    std::sort(order_, order_ + kept, [this](std::uint32_t a, std::uint32_t b) {
      return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a < b;
    });
    std::fill(marks_, marks_ + kept, std::uint8_t{0});
    std::size_t count = 0;
    for (std::size_t i = 0; i < kept && count < most; ++i) {
      if (marks_[i]) { continue; }
      const Box& best = boxes_[order_[i]];
      for (std::size_t j = i + 1; j < kept; ++j) {
        if (!marks_[j] && best.overlap(boxes_[order_[j]]) > attributes_.overlap_threshold()) {
          marks_[j] = 1;
        }
      }
      order_[count++] = order_[i];
    }
    return count;
  }

  // Each box competes with its best class, and shows its best few.
  std::size_t all_at_once() const {
    for (std::size_t i = 0; i < sizes_.boxes; ++i) {
      scores_[i] = *std::max_element(row(i), row(i) + sizes_.classes);
    }
    const std::size_t count = suppress(sizes_.detections);
    const std::size_t shown = std::min(sizes_.each, sizes_.classes);
    for (std::size_t i = 0; i < count; ++i) {
      std::fill(marks_, marks_ + sizes_.classes, std::uint8_t{0});
      for (std::size_t k = 0; k < shown; ++k) {
        const std::size_t kind = best_unmarked(row(order_[i]));
        marks_[kind] = 1;
        show(i * sizes_.each + k, order_[i], kind, row(order_[i])[kind]);
      }
    }
    return count;
  }

  std::size_t best_unmarked(const float* scores) const {
    std::size_t best = sizes_.classes;
    for (std::size_t i = 0; i < sizes_.classes; ++i) {
      if (!marks_[i] && (best == sizes_.classes || scores[i] > scores[best])) { best = i; }
    }
    return best;
  }

  // The boxes of each class compete with each other alone; the best of all classes are shown.
  std::size_t class_by_class() {
    std::size_t total = 0;
    for (std::size_t kind = 0; kind < sizes_.classes; ++kind) {
      for (std::size_t i = 0; i < sizes_.boxes; ++i) { scores_[i] = row(i)[kind]; }
      const std::size_t count = suppress(sizes_.of_class);
      std::size_t next = 0, old = 0, made = 0;
      for (; made < sizes_.detections && (old < total || next < count); ++made) {
        const bool is_old =
            next == count || (old < total && found_[old].score >= scores_[order_[next]]);
        merged_[made] = is_old ? found_[old] : Detection{scores_[order_[next]], place(next, kind)};
        ++(is_old ? old : next);
      }
      std::swap(found_, merged_);
      total = made;
    }
    for (std::size_t i = 0; i < total; ++i) {
      show(i, found_[i].place / sizes_.classes, found_[i].place % sizes_.classes, found_[i].score);
    }
    return total;
  }

  std::uint32_t place(std::size_t rank, std::size_t kind) const {
    return static_cast<std::uint32_t>(order_[rank] * sizes_.classes + kind);
  }

  void show(std::size_t position, std::size_t box, std::size_t kind, float score) const {
    const Box& found = boxes_[box];
    float* target = targets_[0] + 4 * position;
    std::copy_n(found.low, 2, target);
    std::copy_n(found.high, 2, target + 2);
    targets_[1][position] = static_cast<float>(kind);
    targets_[2][position] = score;
  }

  Sizes sizes_;
  const program::DetectionPostProcess& attributes_;
  const float* codes_;
  const float* predictions_;
  const float* anchors_;
  float* targets_[4];  // boxes, classes, scores, and how many there are
  double scales_[4];
  Box* boxes_;
  float* scores_;
  std::uint32_t* order_;
  Detection* found_;
  Detection* merged_;
  std::uint8_t* marks_;
};

// Of boxes, classes and detections each, so that no product of theirs wraps around.
constexpr std::size_t kMost = std::size_t{1} << 26;

Sizes checked_sizes(const Operands& operands) {
  const auto& attributes = *operands.step.kernel_as_DetectionPostProcess();
  const auto& codes = *operands.inputs[0];
  const auto& predictions = *operands.inputs[1];
  const auto& anchors = *operands.inputs[2];
  require(operands,
          codes.rank() == 3 && codes.shape[0] == 1 && codes.shape[2] >= 4 &&
              predictions.rank() == 3 && predictions.shape[0] == 1 &&
              predictions.shape[1] == codes.shape[1] && anchors.rank() == 2 &&
              anchors.shape[0] == codes.shape[1] && anchors.shape[1] == 4,
          "its boxes, scores and anchors do not fit each other");
  const Sizes sizes{codes.shape[1],
                    codes.shape[2],
                    predictions.shape[2],
                    attributes.num_classes(),
                    attributes.max_detections(),
                    attributes.classes_per_detection(),
                    attributes.detections_per_class()};
  require(operands,
          sizes.classes > 0 &&
              (sizes.columns == sizes.classes || sizes.columns - 1 == sizes.classes) &&
              predictions.num_elements() < (std::size_t{1} << 31),
          "its scores do not fit its number of classes");
  require(operands, sizes.boxes < kMost && sizes.columns < kMost && sizes.detections < kMost,
          "it has too many boxes, classes or detections");
  require(operands, sizes.detections > 0 && sizes.each > 0 && sizes.of_class > 0,
          "its number of detections is 0");
  const auto& boxes = *operands.outputs[0];
  const std::size_t rows = operands.outputs[1]->num_elements();
  require(operands,
          boxes.num_elements() % 4 == 0 && boxes.num_elements() / 4 == rows &&
              operands.outputs[2]->num_elements() == rows &&
              operands.outputs[3]->num_elements() == 1 && rows % sizes.each == 0 &&
              rows / sizes.each == sizes.detections,
          "its outputs do not have a row for each detection");
  require(operands, attributes.scales() != nullptr && attributes.scales()->size() == 4,
          "it needs a scale for each of the four numbers of a box");
  return sizes;
}

std::unique_ptr<Step> make_detection(const Operands& operands) {
  require_arity(operands, 3, 3, 4);
  require(operands, operands.outputs.size() == 4, "it has too few outputs");
  require_floats(operands);
  return std::make_unique<DetectionStep>(operands, checked_sizes(operands));
}

const Registration registered{program::Operator::DetectionPostProcess, make_detection};

}  // namespace

}  // namespace arenite
