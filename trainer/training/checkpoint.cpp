#include "trainer/training/checkpoint.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "trainer/compute/tensors.h"
#include "trainer/files/error.h"
#include "trainer/files/safetensors.h"
#include "trainer/files/shallow_json.h"

namespace petlab::trainer {
namespace {

using nlohmann::json;

constexpr char kFormat[] = "petlab-checkpoint";
constexpr char kCheckpointVersion[] = "1";

template <typename T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

template <typename T>
std::optional<T> optional_from(const json& value) {
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

// Some keys name epochs: at first, validations only followed epochs.
json to_json(const TrainingState& state) {
  return {{"step", state.step},
          {"evaluated_epochs", state.evaluations},
          {"best_step", optional_json(state.best_step)},
          {"best_value", optional_json(state.best_value)},
          {"epoch_loss", state.loss_sum},
          {"train_seconds", state.train_seconds}};
}

TrainingState state_from(const json& object) {
  TrainingState state;
  state.step = object.at("step");
  state.evaluations = object.at("evaluated_epochs");
  state.best_step = optional_from<std::int64_t>(object.at("best_step"));
  state.best_value = optional_from<double>(object.at("best_value"));
  state.loss_sum = object.at("epoch_loss");
  state.train_seconds = object.at("train_seconds");
  return state;
}

}  // namespace

void write_checkpoint(const std::filesystem::path& file, const TrialCheckpoint& checkpoint) {
  std::vector<std::pair<std::string, TensorView>> views;
  for (const auto& [name, tensor] : checkpoint.tensors) views.emplace_back(name, to_view(tensor));
  write_safetensors(file, views,
                    {{"format", kFormat},
                     {"v", kCheckpointVersion},
                     {"trial", checkpoint.trial_id},
                     {"state", to_json(checkpoint.state).dump()}});
}

TrialCheckpoint read_checkpoint(const std::filesystem::path& file, const std::string& trial_id) {
  const SafetensorsFile opened = SafetensorsFile::open(file);
  const auto field = [&](const std::string& name) {
    const auto found = opened.metadata().find(name);
    return found == opened.metadata().end() ? std::string() : found->second;
  };
  const auto require = [&](const std::string& name, const std::string& wanted) {
    if (field(name) != wanted) {
      throw Error(file.string() + ": " + name + " is '" + field(name) + "', must be '" + wanted +
                  "'");
    }
  };
  require("format", kFormat);
  require("v", kCheckpointVersion);
  require("trial", trial_id);
  TrialCheckpoint checkpoint;
  checkpoint.trial_id = trial_id;
  try {
    checkpoint.state = state_from(parse_shallow_json(field("state"), file.string() + ": state"));
  } catch (const json::exception& e) {
    throw Error(file.string() + ": state is not a checkpoint's: " + e.what());
  }
  for (const std::string& name : opened.names()) {
    checkpoint.tensors.emplace(name, to_tensor(opened.tensor(name)));
  }
  return checkpoint;
}

}  // namespace petlab::trainer
