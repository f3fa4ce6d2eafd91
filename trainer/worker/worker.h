#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "protocol/trial_directory.h"
#include "sweeps/locations.h"
#include "sweeps/task.h"
#include "sweeps/trial_config.h"
#include "trainer/compute/placement.h"
#include "trainer/data/batches.h"
#include "trainer/training/backbone_store.h"
#include "trainer/training/loop.h"
#include "trainer/worker/event_log.h"

namespace petlab::trainer {

/// Changes whenever the same trial would get other numbers.
inline constexpr char kNumerics[] = "4";
inline constexpr char kWorkerName[] = "petlab-trainer";
inline constexpr int kProtocol = 1;

/// The JSON object of `--describe`.
std::string describe_worker();

/// The environment variable that lets a processor without instructions for bfloat16 compute in it
/// all the same, many times slower: "1".
inline constexpr const char* kEmulateVariable = "PETLAB_EMULATE_BF16";

/// Where, and in which types, a trial computes on `device`. Throws DeviceError for a known device
/// that cannot be used here, and std::invalid_argument for one that does not exist and for
/// training.compute on a processor that lacks its instructions.
Placement placement_for(const sweeps::TrainingConfig& training, const std::string& device,
                        const sweeps::Environment& environment);

/// What a trial's placement is taken from; placement_for, unless a test has devices of its own.
using PlacementChoice =
    std::function<Placement(const sweeps::TrainingConfig& training, const std::string& device,
                            const sweeps::Environment& environment)>;

/// How a trial ended that did not end with a crash. After `device_failed` the device, or what this
/// process holds of it, is unusable: the process must end without another trial.
enum class TrialOutcome { finished, failed, interrupted, device_failed };

/// A split as the backbone reads it: with a head's targets, or with texts.
TokenisedSplit tokenise_inputs(const Split& split, const sweeps::TaskDeclaration& task,
                               const sweeps::DataConfig& data, const LoadedBackbone& backbone);

/// The tokenised data of a trial's tasks. Throws Error, std::invalid_argument.
std::vector<TaskRun> load_tasks(const std::vector<sweeps::TaskDeclaration>& tasks,
                                const sweeps::DataConfig& data,
                                const std::vector<std::filesystem::path>& data_folders,
                                const LoadedBackbone& backbone);

/// Trains the trial in an attempt's directory, as docs/reference/worker-protocol.md says: reads
/// trial.json, writes events, checkpoints and artifact. What goes wrong with the trial is a
/// `failed` event, and so is a backbone or data whose digest is not the one in trial.json; throws
/// only where events cannot be written. `on_step` (may be empty) sees every step's loss.
TrialOutcome train_trial(
    const std::filesystem::path& folder, BackboneStore& backbones, const std::atomic<bool>& stop,
    const Clock& clock, std::ostream& log,
    const std::function<void(std::int64_t step, double loss)>& on_step = nullptr,
    const PlacementChoice& placement_of = placement_for);

/// Exit codes of a worker (docs/reference/worker-protocol.md); any other than kAllOver and kStopped
/// is a crash.
inline constexpr int kAllOver = 0;
inline constexpr int kDeviceFailed = 1;
inline constexpr int kStopped = 3;

/// Calls `train` for the directories that `next` names, a gang at a time, until there are no more,
/// one is interrupted or a device fails; between two trials also where `stop` is set. Returns the
/// worker's exit code.
int train_gangs(const std::function<std::optional<std::vector<std::string>>()>& next,
                const std::function<TrialOutcome(const std::string&)>& train,
                const std::atomic<bool>& stop);

}  // namespace petlab::trainer
