#include "orchestrator/planning/fair_turns.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace petlab::orchestrator {
namespace {

// Beyond this, a run outweighs any number of slots.
constexpr std::int64_t kMostPriority = 30;
constexpr double kRounding = 1e-9;

bool has_place(const RunNeeds& run, const std::string& place) {
  return std::find(run.places.begin(), run.places.end(), place) != run.places.end();
}

// A slot of several cores does not fit where a smaller slot was, so a run of larger slots waits
// until enough cores are free.
bool competes(const RunNeeds& other, const RunNeeds& mine) {
  return other.places_of_slot <= mine.places_of_slot &&
         std::any_of(mine.places.begin(), mine.places.end(),
                     [&](const std::string& place) { return has_place(other, place); });
}

// A run and its fair share, in slots of its own.
struct Entry {
  const RunNeeds* run;
  double share = 0;
  bool lacks() const {
    return run->wants > 0 && static_cast<double>(run->holds) < share - kRounding;
  }
  bool has_too_many(std::int64_t of_slot) const {
    return static_cast<double>(run->holds - of_slot) >= share - kRounding;
  }
  bool exceeds() const { return static_cast<double>(run->holds) > share + kRounding; }
  // Whole slots that it lacks.
  double lacking() const { return std::floor(share - static_cast<double>(run->holds) + kRounding); }
};

// Divides the places among the runs by weight. What a run does not need goes to the others.
void divide(double places, std::vector<Entry*> among) {
  while (!among.empty()) {
    double weights = 0;
    for (const Entry* entry : among) weights += weight_of(*entry->run);
    const double for_weight = places / weights;
    std::vector<Entry*> left;
    for (Entry* entry : among) {
      const auto slots = static_cast<double>(entry->run->holds + entry->run->wants);
      const double size = static_cast<double>(entry->run->places_of_slot);
      entry->share = for_weight * weight_of(*entry->run) / size;
      if (entry->share < slots) {
        left.push_back(entry);
      } else {
        entry->share = slots;
        places -= slots * size;
      }
    }
    if (left.size() == among.size()) return;
    among = std::move(left);
  }
}

// My run, which comes first, and those that compete with it, with their shares of the places that
// they use and of `free` more.
std::vector<Entry> shares_of(const RunNeeds& mine, const std::vector<RunNeeds>& others,
                             std::int64_t free) {
  std::vector<Entry> entries{{&mine}};
  for (const RunNeeds& other : others) {
    if (competes(other, mine)) entries.push_back({&other});
  }
  auto places = static_cast<double>(free);
  for (const Entry& entry : entries) {
    places += static_cast<double>(entry.run->holds * entry.run->places_of_slot);
  }
  for (const bool nice : {false, true}) {
    std::vector<Entry*> among;
    for (Entry& entry : entries) {
      if (entry.run->nice == nice) among.push_back(&entry);
    }
    divide(std::max(0.0, places), among);
    for (const Entry* entry : among) {
      places -= entry->share * static_cast<double>(entry->run->places_of_slot);
    }
  }
  return entries;
}

}  // namespace

double weight_of(const RunNeeds& run) {
  return std::ldexp(1.0, static_cast<int>(std::clamp(run.priority, -kMostPriority, kMostPriority)));
}

const RunNeeds* goes_first(const RunNeeds& mine, const std::vector<RunNeeds>& others) {
  const std::vector<Entry> entries = shares_of(mine, others, mine.places_of_slot);
  const auto claim = [](const Entry& entry) {
    return std::tuple(entry.lacks(), entry.lacking(), -entry.run->served);
  };
  for (std::size_t at = 1; at < entries.size(); ++at) {
    if (entries[at].lacks() && claim(entries[at]) > claim(entries[0])) return entries[at].run;
  }
  return nullptr;
}

const RunNeeds* should_get(const std::vector<std::string>& places, const RunNeeds& mine,
                           const std::vector<RunNeeds>& others, bool had_turn) {
  const std::vector<Entry> entries = shares_of(mine, others, 0);
  const bool too_many = entries[0].has_too_many(std::ssize(places));
  if (!too_many && !(had_turn && entries[0].exceeds())) return nullptr;
  for (std::size_t at = 1; at < entries.size(); ++at) {
    const RunNeeds& other = *entries[at].run;
    const bool can_use = std::any_of(places.begin(), places.end(), [&](const std::string& place) {
      return has_place(other, place);
    });
    if (!entries[at].lacks() || !can_use) continue;
    if (too_many || other.served < mine.served) return &other;
  }
  return nullptr;
}

}  // namespace petlab::orchestrator
