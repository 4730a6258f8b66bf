// The lowest plan, by asking the exact search for one capacity after another.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "ejection_search.hpp"
#include "exact_search.hpp"
#include "local_search.hpp"
#include "sections.hpp"

namespace arenite {

// Asks for the bound first: a tight capacity prunes most. Then it goes on asking there half
// of the time; in the other half, capacities between the bound and the best plan, or searches
// from the best plan, locally or by ejection, whichever was of use last. While ejection lowers the
// plan it has three quarters. Every attempt at a capacity has its own order of the records and a
// limit of nodes; most attempts are short, few are long, for a search that begins badly seldom
// recovers. Stretches of time that share no record are searched apart.
class Minimiser {
 public:
  using ShouldStop = std::function<bool()>;

  // A capacity of interest, or -1.
  struct Goal {
    std::int64_t capacity;
    bool suffices;  // whether a plan within it is low enough
  };

  // `offsets` is any valid plan; `seed` decides the orders, `max_nodes` how much is tried in
  // all.
  Minimiser(const std::vector<UsageRecord>& records, std::vector<std::int64_t> offsets,
            std::int64_t lower_bound, Goal goal, std::uint64_t seed, std::int64_t max_nodes);

  // Ends when height and bound meet, when the goal is reached and suffices or is refuted, when
  // the nodes are used up or `should_stop` says so; it is asked often.
  void run(const ShouldStop& should_stop);

  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t height() const;
  std::int64_t lower_bound() const { return lower_bound_; }

 private:
  bool is_done() const;

  // Where between the bound and the best plan is asked: eighths. The last rung is the goal.
  static constexpr std::array<std::int64_t, 4> kRungs{7, 5, 3, 1};

  // The records of a stretch of time without a gap.
  struct Stretch {
    Stretch(const std::vector<UsageRecord>& records, std::vector<int> members);
    std::vector<int> members;
    Sections sections;
    std::optional<ExactSearch> search;  // none if there are too many to hold
    LocalSearch local;
    EjectionSearch ejection;
    std::int64_t height = 0;
    int attempts_at_bound = 0;
    std::array<int, kRungs.size() + 1> attempts_above{};  // by rung, since the last success
    std::size_t next_rung = 0;
    bool is_local_stale = true;     // there is a better plan than it began at
    bool is_ejection_stale = true;  // likewise
    std::int64_t nodes_at_bound = 0;
    std::int64_t nodes_off_bound = 0;
    std::int64_t vain_above = 0;  // nodes since the last success
    std::int64_t vain_local = 0;
    std::int64_t vain_ejection = 0;
  };

  void ask_at_bound(Stretch& stretch, const ShouldStop& should_stop);
  void ask_above(Stretch& stretch, const ShouldStop& should_stop);
  void search_locally(Stretch& stretch, const ShouldStop& should_stop);
  void search_by_ejection(Stretch& stretch, const ShouldStop& should_stop);
  std::int64_t rung(const Stretch& stretch, std::size_t index) const;
  Verdict attempt(Stretch& stretch, std::int64_t capacity, int number,
                  const ShouldStop& should_stop);
  template <typename Search>
  void adopt_plan_of(const Search& search, Stretch& stretch);
  Guidance guidance(const Sections& sections, int attempt) const;

  std::deque<Stretch> stretches_;
  std::vector<std::int64_t> offsets_;
  std::int64_t lower_bound_;
  Goal goal_;
  std::uint64_t seed_;
  std::int64_t nodes_left_;
  std::mt19937_64 random_;  // of the local searches
};

}  // namespace arenite
