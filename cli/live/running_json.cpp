#include "cli/live/running_json.h"

namespace petlab::cli {

nlohmann::ordered_json running_json(const orchestrator::RunningTrial& trial) {
  nlohmann::ordered_json line = {
      {"trial", trial.trial_id}, {"attempt", trial.attempt}, {"sweep", trial.sweep}};
  if (!trial.variant.empty()) line["variant"] = trial.variant;
  line["host"] = trial.host;
  line["slot"] = trial.slot;
  line["doing"] = trial.doing;
  line["seconds"] = trial.seconds;
  if (trial.of > 0) {
    line["step"] = trial.step;
    line["of"] = trial.of;
  }
  if (trial.loss) line["loss"] = *trial.loss;
  if (trial.best) line["best"] = *trial.best;
  if (trial.device_memory_mib) line["device_memory_mib"] = *trial.device_memory_mib;
  if (trial.seconds_left) line["seconds_left"] = *trial.seconds_left;
  return line;
}

}  // namespace petlab::cli
