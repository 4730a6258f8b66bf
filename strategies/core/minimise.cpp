#include "minimise.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace arenite {
namespace {

// At the bound, before anything else is tried.
constexpr int kAttemptsAtTheBound = 31;
constexpr int kAttemptsAlone = 7;
constexpr std::int64_t kNodesAtTheBound = 200'000;

constexpr int kFixedAttempts = 12;  // with orders that nothing random is mixed into
constexpr std::int64_t kNodesPerRecord = 4;
constexpr std::int64_t kFewestNodes = 256;
constexpr std::int64_t kLocalNodes = 4'096;  // of a turn of the local search
constexpr std::int64_t kEjectionNodes = 4'096;
constexpr std::int64_t kWorkOfEjection = 1;
constexpr std::int64_t kVainNodesOfEjection = 65'536;
constexpr std::int64_t kMostOffBound = 3;  // nodes, to those at the bound
constexpr std::int64_t kAboveToLocal = 4;  // nodes, when neither has success
constexpr std::int64_t kEjectionToLocal = 16;
constexpr std::int64_t kEjectionToAbove = 1;
constexpr std::int64_t kMostMemberships = 200'000'000;  // a few GB

// Luby's sequence 1 1 2 1 1 2 4 ...: within a factor of its logarithm, no other sequence of
// limits is better for a search whose luck is unknown (Luby, Sinclair and Zuckerman 1993).
std::int64_t luby(int index) {
  std::int64_t power = 1;
  while (2 * power - 1 < index) power *= 2;
  return index == 2 * power - 1 ? power : luby(index - static_cast<int>(power) + 1);
}

}  // namespace

Minimiser::Stretch::Stretch(const std::vector<UsageRecord>& records, std::vector<int> members_in)
    : members(std::move(members_in)),
      sections(records, members),
      local(records, members),
      ejection(sections) {
  if (sections.num_memberships() <= kMostMemberships) search.emplace(sections);
}

Minimiser::Minimiser(const std::vector<UsageRecord>& records, std::vector<std::int64_t> offsets,
                     std::int64_t lower_bound, Goal goal, std::uint64_t seed,
                     std::int64_t max_nodes)
    : offsets_(std::move(offsets)),
      lower_bound_(lower_bound),
      goal_(goal),
      seed_(seed),
      nodes_left_(max_nodes),
      random_(seed) {
  for (std::vector<int>& members : stretches(records)) {
    Stretch& stretch = stretches_.emplace_back(records, std::move(members));
    lower_bound_ = std::max(lower_bound_, stretch.sections.lower_bound());
    for (const int index : stretch.members) {
      stretch.height = std::max(stretch.height, offsets_[index] + records[index].size);
    }
  }
}

std::int64_t Minimiser::height() const {
  std::int64_t height = 0;
  for (const Stretch& stretch : stretches_) height = std::max(height, stretch.height);
  return height;
}

bool Minimiser::is_done() const {
  const std::int64_t highest = height();
  if (highest <= lower_bound_ || nodes_left_ <= 0) return true;
  if (goal_.capacity < 0) return false;
  return lower_bound_ > goal_.capacity || (goal_.suffices && highest <= goal_.capacity);
}

void Minimiser::run(const ShouldStop& should_stop) {
  while (!is_done() && !should_stop()) {
    Stretch& stretch =
        *std::max_element(stretches_.begin(), stretches_.end(),
                          [](const Stretch& a, const Stretch& b) { return a.height < b.height; });
    const bool is_early = stretch.attempts_at_bound < kAttemptsAtTheBound &&
                          stretch.nodes_at_bound < kNodesAtTheBound &&
                          (stretch.attempts_at_bound < kAttemptsAlone ||
                           stretch.nodes_at_bound <= 2 * stretch.nodes_off_bound);
    // Success comes in runs: what lowered the plan lately goes on, most of the time.
    const bool is_fruitful = stretch.ejection.is_possible() &&
                             stretch.vain_ejection <= kVainNodesOfEjection &&
                             stretch.nodes_off_bound <= kMostOffBound * stretch.nodes_at_bound;
    if (!is_early && is_fruitful) {
      search_by_ejection(stretch, should_stop);
    } else if (stretch.search && (is_early || stretch.nodes_at_bound <= stretch.nodes_off_bound)) {
      ask_at_bound(stretch, should_stop);
    } else if (stretch.search && stretch.vain_above <= kAboveToLocal * stretch.vain_local &&
               (!stretch.ejection.is_possible() ||
                kEjectionToAbove * stretch.vain_above <= stretch.vain_ejection)) {
      ask_above(stretch, should_stop);
    } else if (stretch.ejection.is_possible() &&
               stretch.vain_ejection <= kEjectionToLocal * stretch.vain_local) {
      search_by_ejection(stretch, should_stop);
    } else {
      search_locally(stretch, should_stop);
    }
  }
}

void Minimiser::ask_at_bound(Stretch& stretch, const ShouldStop& should_stop) {
  const std::int64_t before = nodes_left_;
  attempt(stretch, lower_bound_, ++stretch.attempts_at_bound, should_stop);
  stretch.nodes_at_bound += before - nodes_left_;
}

void Minimiser::ask_above(Stretch& stretch, const ShouldStop& should_stop) {
  const std::size_t index = stretch.next_rung++ % stretch.attempts_above.size();
  const std::int64_t capacity = rung(stretch, index);
  const std::int64_t before = nodes_left_--;  // also when there is nothing to ask
  Verdict verdict = Verdict::kUnknown;
  if (capacity < stretch.height) {
    verdict = attempt(stretch, capacity, ++stretch.attempts_above[index], should_stop);
  }
  const std::int64_t nodes = before - nodes_left_;
  stretch.nodes_off_bound += nodes;
  stretch.vain_above = verdict == Verdict::kFits ? 0 : stretch.vain_above + nodes;
}

void Minimiser::search_locally(Stretch& stretch, const ShouldStop& should_stop) {
  if (stretch.is_local_stale) {
    std::vector<std::int64_t> offsets;
    for (const int index : stretch.members) offsets.push_back(offsets_[index]);
    stretch.local.begin_at(offsets);
    stretch.is_local_stale = false;
  }
  // A step drops every record once.
  const auto per_step = static_cast<std::int64_t>(stretch.members.size());
  for (std::int64_t nodes = 0; nodes < kLocalNodes && nodes_left_ > 0 && !should_stop();
       nodes += per_step) {
    const bool is_lower = stretch.local.step(random_);
    nodes_left_ -= per_step;
    stretch.nodes_off_bound += per_step;
    stretch.vain_local = is_lower ? 0 : stretch.vain_local + per_step;
    if (stretch.local.height() <= lower_bound_) break;
  }
  if (stretch.local.height() >= stretch.height) return;
  stretch.height = stretch.local.height();
  stretch.attempts_above.fill(0);
  stretch.is_ejection_stale = true;
  for (std::size_t index = 0; index < stretch.members.size(); ++index) {
    offsets_[stretch.members[index]] = stretch.local.offsets()[index];
  }
}

void Minimiser::search_by_ejection(Stretch& stretch, const ShouldStop& should_stop) {
  if (stretch.is_ejection_stale) {
    stretch.ejection.begin_at(offsets_, stretch.height - 1);
    stretch.is_ejection_stale = false;
  }
  const bool is_lower = stretch.ejection.run(kEjectionNodes, random_, should_stop);
  const std::int64_t nodes = kWorkOfEjection * (stretch.ejection.num_nodes() + 1);
  nodes_left_ -= nodes;
  stretch.nodes_off_bound += nodes;
  stretch.vain_ejection = is_lower ? 0 : stretch.vain_ejection + nodes;
  if (is_lower) adopt_plan_of(stretch.ejection, stretch);
}

// Returns the capacity of a rung: one between the bound and the best plan, or the goal.
std::int64_t Minimiser::rung(const Stretch& stretch, std::size_t index) const {
  if (index == kRungs.size())
    return goal_.capacity >= lower_bound_ ? goal_.capacity : stretch.height;
  const std::int64_t gap = stretch.height - 1 - lower_bound_;
  return lower_bound_ + gap / 8 * kRungs[index] + gap % 8 * kRungs[index] / 8;
}

Verdict Minimiser::attempt(Stretch& stretch, std::int64_t capacity, int number,
                           const ShouldStop& should_stop) {
  const Guidance order = guidance(stretch.sections, number);
  const std::int64_t max_nodes =
      luby(number) * std::max(kFewestNodes, kNodesPerRecord * stretch.sections.num_records());
  const Verdict verdict =
      stretch.search->run(capacity, order, std::min(max_nodes, nodes_left_), should_stop);
  nodes_left_ -= stretch.search->num_nodes();
  if (verdict == Verdict::kFits) adopt_plan_of(*stretch.search, stretch);
  if (verdict == Verdict::kImpossible) {
    lower_bound_ = std::max(lower_bound_, stretch.sections.next_height(capacity));
  }
  return verdict;
}

template <typename Search>
void Minimiser::adopt_plan_of(const Search& search, Stretch& stretch) {
  const Sections& sections = stretch.sections;
  stretch.height = 0;
  stretch.attempts_above.fill(0);
  stretch.is_local_stale = true;
  stretch.is_ejection_stale = true;
  for (int index = 0; index < sections.num_records(); ++index) {
    const Sections::Record& record = sections.records[index];
    const std::int64_t offset = search.offset(index);
    offsets_[record.source] = offset * sections.unit;
    stretch.height = std::max(stretch.height, sections.top(record, offset));
  }
}

// The first attempts put lifetime, load or size first, whatever is at hand to tell equals
// apart; the others weigh the three as chance has it. The rules to pick a section take turns,
// but one attempt in four has size first and the tightest section, which served best.
Guidance Minimiser::guidance(const Sections& sections, int attempt) const {
  std::mt19937_64 random(seed_ * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(attempt));
  // Scaled by hand: what a standard distribution draws is not the same everywhere.
  const auto draw = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  constexpr std::array<Guidance::Pick, 4> kPicks{Guidance::Pick::kTightest, Guidance::Pick::kFewest,
                                                 Guidance::Pick::kLowestTightest,
                                                 Guidance::Pick::kLowestFewest};
  const int leader = (attempt - 1) / 4 % 4;
  const bool is_mixed = attempt > kFixedAttempts;
  const double lifetime = leader == 0 ? 1 : is_mixed ? draw() / 2 : 1e-6;
  const double load = leader == 1 ? 4 : is_mixed ? draw() : 1e-9;
  const double size = leader >= 2 ? 1 : is_mixed ? draw() / 2 : 1e-3;
  const double noise = is_mixed ? 0.2 : 0;
  Guidance guidance{leader == 3 ? Guidance::Pick::kTightest : kPicks[(attempt - 1) % 4], {}};
  for (const Sections::Record& record : sections.records) {
    const std::int64_t most = *std::max_element(sections.loads.begin() + record.first,
                                                sections.loads.begin() + record.last);
    guidance.priorities.push_back(lifetime * std::log(static_cast<double>(record.lifetime)) +
                                  load * std::log(static_cast<double>(most)) +
                                  size * std::log(static_cast<double>(record.size)) +
                                  noise * draw());
  }
  return guidance;
}

}  // namespace arenite
