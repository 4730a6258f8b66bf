#include "band_walk.hpp"

#include <algorithm>

namespace arenite {
namespace {

constexpr int kNone = -1;

// The lowest row that is read once the rows before `end` are made.
std::int64_t still_needed(const BandReads& reads, std::int64_t end) {
  const auto row = static_cast<std::size_t>(end);
  return row < reads.first.size() ? reads.first[row] : reads.stop.back();
}

}  // namespace

double BandStep::Times::of(std::int64_t rows) const {
  const auto count = static_cast<double>(rows);
  return turn_s + std::max(work_s * count, constant_s + touched_s * count);
}

BandWalk::BandWalk(BandProgram program)
    : program_(std::move(program)),
      makers_(program_.tensors.size(), kNone),
      dying_of_(program_.tensors.size(), kNone) {}

bool BandWalk::run(const BandRegion& region, std::int64_t limit, std::vector<BandTurn>* turns) {
  turns_ = turns;
  limit_ = limit;
  begin(region);
  if (load_ > limit_) return false;
  while (!results_.empty()) {
    const int step = find_result();
    const std::int64_t num_rows = step_at(step).num_rows;
    if (!pull(step, std::min(num_rows, made_[step] + region.rows))) return false;
    if (made_[step] == num_rows) {
      results_.erase(std::find(results_.begin(), results_.end(), step));
    }
  }
  return true;
}

void BandWalk::begin(const BandRegion& region) {
  start_ = region.start;
  count_ = region.stop - region.start;
  inner_rows_ = region.inner_rows;
  made_.assign(count_, 0);
  spans_.clear();
  sources_.clear();
  results_.clear();
  num_dying_ = 0;
  load_ = region.carried;
  num_turns_ = 0;
  seconds_ = 0;
  const auto let_die = [&](int tensor) {
    if (dying_.size() == num_dying_) dying_.emplace_back();
    dying_of_[tensor] = static_cast<int>(num_dying_);
    Dying& dying = dying_[num_dying_++];
    dying.row_bytes = program_.tensors[tensor].row_bytes();
    dying.dead = 0;
    dying.passed.clear();
  };
  for (const int tensor : region.consumed) {
    load_ += program_.tensors[tensor].size;
    let_die(tensor);
  }
  for (int step = 0; step < count_; ++step) makers_[step_at(step).result] = step;
  for (int step = 0; step < count_; ++step) {
    const std::size_t begin = sources_.size();
    for (const BandReads& reads : step_at(step).reads) {
      const int maker = makers_[reads.tensor];
      int& dying = dying_of_[reads.tensor];
      const bool is_kept =
          std::find(region.kept.begin(), region.kept.end(), reads.tensor) != region.kept.end();
      if (dying == kNone && maker != kNone && !is_kept) let_die(reads.tensor);
      int passed = 0;
      if (dying != kNone) {
        passed = static_cast<int>(dying_[dying].passed.size());
        dying_[dying].passed.push_back(0);
      }
      const bool may_overwrite = maker != kNone && dying != kNone && reads.may_overwrite;
      sources_.push_back({&reads, maker, dying, passed, may_overwrite});
    }
    spans_.emplace_back(begin, sources_.size());
  }
  std::vector<char> is_read(count_, 0);
  for (const Source& source : sources_) {
    if (source.maker != kNone) is_read[source.maker] = 1;
  }
  for (int step = 0; step < count_; ++step) {
    if (is_read[step] == 0) results_.push_back(step);
    makers_[step_at(step).result] = kNone;
  }
  for (const Source& source : sources_) dying_of_[source.reads->tensor] = kNone;
  for (const int tensor : region.consumed) dying_of_[tensor] = kNone;
  peak_ = load_;
}

// The result of which the smallest part is made; of equals the first.
int BandWalk::find_result() const {
  return *std::min_element(results_.begin(), results_.end(), [&](int a, int b) {
    return made_[a] * step_at(b).num_rows < made_[b] * step_at(a).num_rows;
  });
}

// Makes the rows of a step up to `stop`, after those that they depend on.
bool BandWalk::pull(int step, std::int64_t stop) {
  tasks_.clear();
  const auto ask = [&](int asked, std::int64_t rows) {
    // There is no result of sums before the last row.
    tasks_.push_back({asked, step_at(asked).accumulators != 0 ? step_at(asked).num_rows : rows});
  };
  ask(step, stop);
  while (!tasks_.empty()) {
    const Task task = tasks_.back();
    if (made_[task.step] >= task.stop) {
      tasks_.pop_back();
      continue;
    }
    const std::int64_t end = std::min(task.stop, made_[task.step] + inner_rows_);
    const int missing = missing_source(task.step, end);
    if (missing != kNone) {
      const Source& source = sources_[missing];
      ask(source.maker, source.reads->stop[end - 1]);
    } else if (!make(task.step, end)) {
      return false;
    }
  }
  return true;
}

// The first source of which rows are needed that are not made yet.
int BandWalk::missing_source(int step, std::int64_t end) const {
  for (std::size_t index = spans_[step].first; index < spans_[step].second; ++index) {
    const Source& source = sources_[index];
    if (source.maker != kNone && made_[source.maker] < source.reads->stop[end - 1]) {
      return static_cast<int>(index);
    }
  }
  return kNone;
}

bool BandWalk::make(int step, std::int64_t end) {
  const BandStep& own = step_at(step);
  const std::int64_t first = made_[step];
  const bool is_last = end == own.num_rows;
  made_[step] = end;
  ++num_turns_;
  seconds_ += own.times.of(end - first);
  if (turns_ != nullptr) turns_->push_back({start_ + step, first, end - first});
  const BandTensor& result = program_.tensors[own.result];
  std::int64_t grown = 0;
  if (own.accumulators == 0) {
    grown = (end - first) * result.row_bytes();
  } else {
    if (first == 0) grown += own.accumulators;
    if (is_last) grown += result.size;
  }
  std::int64_t freed = 0, replaced = 0;
  for (std::size_t index = spans_[step].first; index < spans_[step].second; ++index) {
    const Source& source = sources_[index];
    if (source.dying == kNone) continue;
    Dying& dying = dying_[source.dying];
    dying.passed[source.passed] = still_needed(*source.reads, end);
    const std::int64_t dead = *std::min_element(dying.passed.begin(), dying.passed.end());
    if (dead <= dying.dead) continue;
    if (source.may_overwrite && dying.dead <= first && dead >= end) {
      replaced = std::max(replaced, grown);
    }
    freed += (dead - dying.dead) * dying.row_bytes;
    dying.dead = dead;
  }
  const std::int64_t highest = load_ + grown - replaced + own.scratch;
  peak_ = std::max(peak_, highest);
  if (highest > limit_) return false;
  if (own.accumulators != 0 && is_last) freed += own.accumulators;
  load_ += grown - freed;
  return true;
}

}  // namespace arenite
