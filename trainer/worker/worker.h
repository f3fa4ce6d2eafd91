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

/// Increase this whenever a change gives the same trial different numbers.
inline constexpr char kNumerics[] = "4";
inline constexpr char kWorkerName[] = "petlab-trainer";
inline constexpr int kProtocol = 1;

/// Returns the JSON object that `--describe` prints.
std::string describe_worker();

/// An environment variable. "1" allows training in bfloat16 on processors without bfloat16
/// instructions, many times slower.
inline constexpr const char* kEmulateVariable = "PETLAB_EMULATE_BF16";

/// Returns the device and types that a trial on `device` computes with. Throws DeviceError for a
/// known device that is unusable here, and std::invalid_argument for an unknown device or for a
/// training.compute whose instructions the processor lacks.
Placement placement_for(const sweeps::TrainingConfig& training, const std::string& device,
                        const sweeps::Environment& environment);

/// Chooses a trial's placement: placement_for, or a substitute in tests.
using PlacementChoice =
    std::function<Placement(const sweeps::TrainingConfig& training, const std::string& device,
                            const sweeps::Environment& environment)>;

/// How a trial ended, if not with a crash, the worst last. After `stopped`, which petlab asked of
/// this trial alone, others may follow. After `device_failed`, the device or this process's state
/// on it is unusable: the process must exit without training another trial.
enum class TrialOutcome { finished, failed, stopped, interrupted, device_failed };

/// Tokenises a split for the backbone, with targets for a head or texts for a T5. Throws Error as
/// require_rows.
TokenisedSplit tokenise_inputs(const Split& split, const sweeps::TaskDeclaration& task,
                               const sweeps::DataConfig& data, const LoadedBackbone& backbone);

/// Loads and tokenises the data of a trial's tasks. Throws Error, std::invalid_argument.
std::vector<TaskRun> load_tasks(const std::vector<sweeps::TaskDeclaration>& tasks,
                                const sweeps::DataConfig& data,
                                const std::vector<std::filesystem::path>& data_folders,
                                const LoadedBackbone& backbone);

/// Trains the trials in attempts' directories (docs/reference/worker-protocol.md): reads
/// trial.json, writes events, checkpoints and artifacts. Trials that fit are trained together, the
/// others one after another. A failure becomes a `failed` event of its trial, including a backbone
/// or data whose digest differs from trial.json. Throws only if events cannot be written. `on_step`
/// (may be empty) receives every step's loss. Returns the worst outcome.
TrialOutcome train_gang(
    const std::vector<std::filesystem::path>& folders, BackboneStore& backbones,
    const std::atomic<bool>& stop, const Clock& clock, std::ostream& log,
    const std::function<void(std::int64_t step, double loss)>& on_step = nullptr,
    const PlacementChoice& placement_of = placement_for);

/// Exit codes of a worker (docs/reference/worker-protocol.md). Any code other than kAllOver and
/// kStopped is a crash.
inline constexpr int kAllOver = 0;
inline constexpr int kDeviceFailed = 1;
inline constexpr int kStopped = 3;

/// Calls `train` for the directories of each gang that `next` returns. Stops when `next` returns
/// nothing, a trial is interrupted, a device fails, or `stop` is set between two gangs. Returns the
/// worker's exit code.
int train_gangs(const std::function<std::optional<std::vector<std::string>>()>& next,
                const std::function<TrialOutcome(const std::vector<std::string>&)>& train,
                const std::atomic<bool>& stop);

}  // namespace petlab::trainer
