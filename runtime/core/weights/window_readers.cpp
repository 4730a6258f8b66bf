#include "weights/window_readers.hpp"

#include <iterator>
#include <map>

namespace arenite {

namespace {

using program::Operator;

class Walk {
 public:
  Walk(const program::Program& program, const std::vector<TensorView>& tensors)
      : program_(program), tensors_(tensors), uses_(program.steps()->size()) {
    num_readers_.resize(uses_.size());
  }

  std::vector<WindowUse> uses() {
    const auto& steps = *program_.steps();
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const auto& step = *steps.Get(static_cast<flatbuffers::uoffset_t>(i));
      note_reads(step, i);
      note_writes(step, i);
    }
    for (const auto* port : *program_.outputs()) {
      note_other_read(tensor(port->tensor()));
    }
    return std::move(uses_);
  }

 private:
  struct Window {
    const std::byte* end;
    std::size_t loader;
  };
  using Windows = std::map<const std::byte*, Window>;  // by where they begin; none overlap

  const TensorView* tensor(std::int32_t index) const {
    return index < 0 ? nullptr : &tensors_[static_cast<std::size_t>(index)];
  }

  static const TensorView* operand(const program::Step& step, std::size_t position,
                                   const std::vector<TensorView>& tensors) {
    if (step.inputs() == nullptr || position >= step.inputs()->size()) {
      return nullptr;
    }
    const auto index = step.inputs()->Get(static_cast<flatbuffers::uoffset_t>(position));
    return index < 0 ? nullptr : &tensors[static_cast<std::size_t>(index)];
  }

  // The first window that has a byte of the tensor, or the end.
  Windows::iterator first_of(const TensorView* view) {
    if (view == nullptr || view->is_constant || view->size == 0) {
      return windows_.end();
    }
    auto found = windows_.upper_bound(view->data);
    if (found != windows_.begin() && std::prev(found)->second.end > view->data) {
      --found;
    }
    return found != windows_.end() && found->first < view->data + view->size ? found
                                                                             : windows_.end();
  }

  void note_reads(const program::Step& step, std::size_t index) {
    const bool has_filter =
        step.kernel_type() == Operator::Conv2D || step.kernel_type() == Operator::FullyConnected;
    const std::size_t count = step.inputs() == nullptr ? 0 : step.inputs()->size();
    for (std::size_t position = 0; position < count; ++position) {
      const auto* view = operand(step, position, tensors_);
      const auto found = first_of(view);
      if (found == windows_.end()) {
        continue;
      }
      const bool is_filter = has_filter && position == 1 && found->first == view->data &&
                             view->data + view->size <= found->second.end;
      if (!is_filter) {
        note_other_read(view);
        continue;
      }
      const std::size_t loader = found->second.loader;
      uses_[index].loader = loader;
      uses_[loader].may_pack = ++num_readers_[loader] == 1 && has_same_bias(step, loader);
    }
  }

  bool has_same_bias(const program::Step& step, std::size_t loader) const {
    const auto& load = *program_.steps()->Get(static_cast<flatbuffers::uoffset_t>(loader));
    const auto* loaded = operand(load, 1, tensors_);
    const auto* read = operand(step, 2, tensors_);
    if (loaded == nullptr || read == nullptr) {
      return loaded == read;
    }
    return loaded->data == read->data && loaded->size == read->size &&
           loaded->coded_size == read->coded_size;
  }

  // Whoever is not a filter's step expects the weights as they are.
  void note_other_read(const TensorView* view) {
    const auto first = first_of(view);
    for (auto each = first; each != windows_.end() && each->first < view->data + view->size;
         ++each) {
      ++num_readers_[each->second.loader];
      uses_[each->second.loader].may_pack = false;
    }
  }

  void note_writes(const program::Step& step, std::size_t index) {
    if (step.outputs() != nullptr) {
      for (const auto output : *step.outputs()) {
        forget(tensor(output));
      }
    }
    forget(tensor(step.scratch()));
    if (step.kernel_type() == Operator::LoadWeights && step.outputs() != nullptr &&
        step.outputs()->size() == 1) {
      const auto& window = *tensor(step.outputs()->Get(0));
      if (window.size > 0) {
        windows_[window.data] = {window.data + window.size, index};
      }
    }
  }

  void forget(const TensorView* view) {
    for (auto each = first_of(view);
         each != windows_.end() && each->first < view->data + view->size;) {
      each = windows_.erase(each);
    }
  }

  const program::Program& program_;
  const std::vector<TensorView>& tensors_;
  std::vector<WindowUse> uses_;
  std::vector<std::size_t> num_readers_;  // by loader
  Windows windows_;
};

}  // namespace

std::vector<WindowUse> window_uses(const program::Program& program,
                                   const std::vector<TensorView>& tensors) {
  return Walk(program, tensors).uses();
}

}  // namespace arenite
