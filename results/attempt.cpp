#include "results/attempt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shallow_json.h"

namespace petlab::results {
bool is_gpu_share(std::string_view slot) {
  return slot.starts_with("gpu-") && slot.find('.') != std::string_view::npos;
}

bool ran_out_of_memory(const AttemptFacts& attempt) {
  return attempt.outcome == Outcome::failed && attempt.kind == "out_of_memory";
}

bool device_failed(const AttemptFacts& attempt) {
  return attempt.outcome == Outcome::failed && attempt.kind == "device";
}

bool failed_with_its_gang(const AttemptFacts& attempt) {
  return attempt.outcome == Outcome::failed && attempt.kind == "gang";
}

bool is_final_failure(const AttemptFacts& attempt) {
  return (attempt.outcome == Outcome::failed && !ran_out_of_memory(attempt) &&
          !device_failed(attempt) && !failed_with_its_gang(attempt)) ||
         attempt.outcome == Outcome::timed_out;
}

std::int64_t counted_failures(const TrialFacts& facts) {
  bool gang_failed_before = false;
  return std::count_if(
      facts.attempts.begin(), facts.attempts.end(), [&](const AttemptFacts& attempt) {
        // Any trial of the gang may have been the cause. The next attempt is alone.
        const bool again =
            std::exchange(gang_failed_before, failed_with_its_gang(attempt)) && gang_failed_before;
        // On a share of a GPU, other workers may have used up the memory. The trial then gets the
        // whole GPU.
        return attempt.attempt.number > facts.retried_after &&
               (attempt.outcome == Outcome::crashed || attempt.outcome == Outcome::stalled ||
                device_failed(attempt) || again ||
                (ran_out_of_memory(attempt) && !is_gpu_share(attempt.begun.device)));
      });
}

std::int64_t allowed_retries(const TrialFacts& facts, std::optional<std::int64_t> retries) {
  if (retries) return *retries;
  if (facts.attempts.empty()) return kUsualRetries;
  return facts.attempts.back().begun.retries.value_or(kUsualRetries);
}

bool has_failed(const TrialFacts& facts, std::optional<std::int64_t> retries) {
  if (facts.attempts.empty()) return false;
  const AttemptFacts& last = facts.attempts.back();
  return (is_final_failure(last) && last.attempt.number > facts.retried_after) ||
         counted_failures(facts) > allowed_retries(facts, retries);
}

std::string numerics_version(const std::string& numerics) {
  const nlohmann::json object = base::shallow_json_or_none(numerics);
  if (!object.is_object() || !object.contains("version")) return {};
  const nlohmann::json& version = object["version"];
  return version.is_string() ? version.get<std::string>() : version.dump();
}

bool is_to_renew(const TrialFacts& facts) {
  return facts.result_attempt && *facts.result_attempt <= facts.renewed_after;
}

}  // namespace petlab::results
