#include "orchestrator/running/shapes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/sha256.h"
#include "sweeps/identity.h"

namespace petlab::orchestrator {

Shapes::Shapes(const std::vector<sweeps::SweepTrial>& trials) {
  std::unordered_map<std::string, std::size_t> numbers;  // by digest: the texts are long
  shape_of_.reserve(trials.size());
  sweeps::TrialConfig last;
  for (const sweeps::SweepTrial& trial : trials) {
    sweeps::TrialConfig config = trial.config;
    config.seed = {};
    // The seeds of one configuration are usually adjacent.
    if (!shape_of_.empty() && config == last) {
      shape_of_.push_back(shape_of_.back());
      continue;
    }
    const std::string digest = base::sha256(sweeps::to_json(config).dump());
    shape_of_.push_back(numbers.emplace(digest, numbers.size()).first->second);
    last = std::move(config);
  }
  shapes_.resize(numbers.size());
}

namespace {

// Of an attempt that was trained together with others, memory and time are those of all.
bool ran_alone(const results::AttemptFacts& attempt) {
  const nlohmann::json numerics = nlohmann::json::parse(attempt.numerics, nullptr, false);
  return !numerics.is_object() || numerics.value("gang", nlohmann::json(1)) == 1;
}

}  // namespace

void Shapes::learn(std::size_t trial, const std::vector<results::AttemptFacts>& attempts) {
  Shape& shape = shapes_[shape_of_[trial]];
  for (const results::AttemptFacts& attempt : attempts) {
    // An unfinished attempt might have needed more later.
    if (attempt.outcome != results::Outcome::finished || !ran_alone(attempt)) continue;
    if (attempt.device_memory_mib) {
      needed(trial, static_cast<std::int64_t>(std::ceil(*attempt.device_memory_mib)));
    }
    if (!attempt.started_at || !attempt.ended_at || attempt.begun.resume) continue;
    shape.seconds += *attempt.ended_at - *attempt.started_at;
    ++shape.timed;
  }
}

void Shapes::needed(std::size_t trial, std::int64_t memory_mib) {
  std::int64_t& most = shapes_[shape_of_[trial]].memory_mib;
  most = std::max(most, memory_mib);
}

std::optional<std::int64_t> Shapes::memory_mib(std::size_t trial) const {
  const std::int64_t most = shapes_[shape_of_[trial]].memory_mib;
  return most > 0 ? std::optional(most) : std::nullopt;
}

std::optional<double> Shapes::seconds(std::size_t trial) const {
  const Shape& shape = shapes_[shape_of_[trial]];
  return shape.timed > 0 ? std::optional(shape.seconds / shape.timed) : std::nullopt;
}

}  // namespace petlab::orchestrator
