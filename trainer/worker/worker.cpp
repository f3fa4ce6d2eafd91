// An attempt's life in a worker, from trial.json to its last event, is one class, next to the
// functions that train several attempts together: hence more than 500 lines.
#include "trainer/worker/worker.h"

#include <dlfcn.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/build_info.h"
#include "base/machine.h"
#include "metrics/storage.h"
#include "sweeps/identity.h"
#include "trainer/artifact/module_artifact.h"
#include "trainer/compute/device_kernels.h"
#include "trainer/compute/device_memory.h"
#include "trainer/compute/devices.h"
#include "trainer/compute/error_text.h"
#include "trainer/compute/host_memory.h"
#include "trainer/compute/products.h"
#include "trainer/data/load_data.h"
#include "trainer/data/token_rows.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/training/checkpoint.h"
#include "trainer/training/gang.h"
#include "trainer/worker/version.h"

namespace petlab::trainer {
namespace {

using nlohmann::ordered_json;

/// Trials up to this length report every step, so that two runs can be compared step by step.
constexpr std::int64_t kStepsAllReported = 2000;
/// The minimum time between progress events, and between log lines, of a longer trial.
constexpr std::chrono::milliseconds kProgressEvery{500};
/// The time from one look for petlab's request to stop a trial to the next.
constexpr std::chrono::milliseconds kLookEvery{200};

/// `gang`: the number of trials that are trained together.
std::string numerics_of(const protocol::TrialFile& trial, std::size_t gang) {
  ordered_json numerics{{"version", kNumerics}, {"device", trial.device}};
  if (trial.device == "cpu") {
    numerics["threads"] = trial.threads;
  } else {
    // The GPU and LibTorch decide which kernels run and in which order they add. The host adds
    // nothing up, so its threads do not matter.
    const std::string model = base::gpu_model(trial.device_uuid);
    numerics["gpu"] = model.empty() ? "unknown" : model;
    numerics["libtorch"] = TORCH_VERSION;
    const bool petlab_kernels =
        !why_not_on(trial.device) && device_kernels(placement_on(trial.device).device) != nullptr;
    numerics["kernels"] = petlab_kernels ? kKernelsVersion : "libtorch";
  }
  numerics["layout"] = "packed";
  numerics["gang"] = gang;
  // The default, oneDNN, is not recorded, so numerics from before the choice existed still match.
  if (trial.device == "cpu" && product_libraries() != ProductLibraries()) {
    numerics["products"] = to_string(product_libraries());
  }
  if (trial.config.training.compute != sweeps::ComputeType::float32) {
    numerics["compute"] = to_string(trial.config.training.compute);
    if (trial.device == "cpu" && !multiplies_bf16()) numerics["emulated"] = true;
  }
  return numerics.dump();
}

/// The digests of a trial's input files.
struct FileContents {
  std::string backbone;                     // digest
  std::map<std::string, std::string> data;  // by task
};

/// Computes the digests of the current files. Throws sweeps::Error if one is missing.
FileContents current_contents(const protocol::TrialFile& trial, sweeps::FileDigests& digests) {
  FileContents found;
  found.backbone = sweeps::backbone_digest(trial.backbone_folder, digests);
  for (const sweeps::TaskDeclaration& task : trial.tasks) {
    found.data[task.name] = sweeps::data_digest(task, trial.data_folders, digests);
  }
  return found;
}

/// Throws Error unless `found` matches `wanted`; `why` is appended to the message and names the
/// source of `wanted`. Digests missing from `wanted` (trial.json may omit them) are not checked.
void require_contents(const protocol::TrialFile& trial, const FileContents& found,
                      const FileContents& wanted, const std::string& why) {
  const auto require = [&](const std::string& subject, const std::string& is,
                           const std::string& must_be) {
    if (must_be.empty() || is == must_be) return;
    throw Error(subject + " is " + is + ", must be " + must_be + why);
  };
  require(trial.backbone_folder.string() + ": the backbone's digest", found.backbone,
          wanted.backbone);
  for (const auto& [task, digest] : wanted.data) {
    const auto actual = found.data.find(task);
    require("task " + task + ": the digest of its data",
            actual == found.data.end() ? "none" : actual->second, digest);
  }
}

/// Whether this line of a LibTorch error reports a device failure that no later call recovers from:
/// an illegal access, a memory error, a lost GPU. Drivers and libraries all use these prefixes.
bool reports_device_failure(const std::string& line) {
  for (const char* const words : {"CUDA error: ", "HIP error: ", "cuDNN error: "}) {
    if (line.starts_with(words)) return true;
  }
  return false;
}

/// The first line of an error; LibTorch may append more, and a DeviceError may quote it.
std::string first_line(const std::exception& error) {
  const std::string text = message_of(error);
  return text.substr(0, text.find('\n'));
}

/// Whether this line of a LibTorch error reports too little memory. Errors of the CPU allocator and
/// of a device's driver or libraries have no type of their own, so the text decides.
bool reports_out_of_memory(const std::string& line) {
  for (const char* const words :
       {"can't allocate memory", "error: out of memory", "STATUS_ALLOC_FAILED"}) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

// The build and the machine that compute this trial (docs/reference/worker-protocol.md).
std::string provenance_of(const protocol::TrialFile& trial) {
  const base::BuildInfo& build = base::build_info();
  const base::Machine machine = base::this_machine();
  ordered_json all = {{"commit", build.commit},
                      {"clean", build.clean ? ordered_json(*build.clean) : ordered_json()},
                      {"compiler", build.compiler},
                      {"flags", build.flags},
                      {"libtorch", TORCH_VERSION},
                      {"processor", machine.processor},
                      {"kernel", machine.kernel}};
  if (trial.device == "cuda") {
    all["gpu_driver"] = machine.gpu_driver;
    if (!trial.device_uuid.empty()) all["gpu"] = base::gpu_model(trial.device_uuid);
  }
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// An attempt in this worker: its directory, its events and its trial.
class AttemptRun {
 public:
  AttemptRun(const std::filesystem::path& folder, const Clock& clock, std::ostream& log)
      : directory_(folder), clock_(clock), log_(log) {
    started_.pid = ::getpid();
    started_.worker = kWorkerName;
    started_.version = kVersion;
    started_.numerics = "{}";
  }

  /// Does a part of the attempt's work. If it fails, so does the attempt. `trials`: the number of
  /// attempts whose common work it is. Throws only if events cannot be written.
  template <typename Work>
  void attempt(Work work, std::size_t trials = 1) {
    if (outcome_) return;
    protocol::Failed failed;
    try {
      work();
      return;
    } catch (const NotFinite& e) {
      failed = {e.what(), "not_finite"};
    } catch (const std::bad_alloc&) {
      failed = {
          "not enough memory: use a smaller training.batch_size or a larger "
          "training.gradient_accumulation",
          "out_of_memory"};
    } catch (const c10::OutOfMemoryError& e) {
      failed = {first_line(e), "out_of_memory"};
    } catch (const c10::Error& e) {
      const std::string line = first_line(e);
      failed = {line, reports_out_of_memory(line)    ? "out_of_memory"
                      : reports_device_failure(line) ? "device"
                                                     : "error"};
    } catch (const DeviceError& e) {
      failed = {first_line(e), "device"};
    } catch (const std::exception& e) {
      failed = {first_line(e), "error"};
    }
    const bool is_device = failed.kind == "device";
    if (trials > 1) {
      failed.reason =
          "with " + std::to_string(trials) + " trials trained together: " + failed.reason;
      failed.kind = "gang";
    }
    failed.reason = protocol::bounded_reason(failed.reason);
    line() << "failed: " << failed.reason << std::endl;
    if (!start_told_) write(started_);
    write(failed);
    outcome_ = is_device ? TrialOutcome::device_failed : TrialOutcome::failed;
  }

  void read() {
    trial_ = protocol::read_trial_file(directory_.trial_json());
    module_kind(trial_.config.module.kind);  // throws if this trainer has no such kind
  }

  /// Whether the trials can be trained together.
  bool fits(const AttemptRun& other) const {
    return trial_.device == other.trial_.device && trial_.device_uuid == other.trial_.device_uuid &&
           trial_.threads == other.trial_.threads &&
           trial_.backbone_folder == other.trial_.backbone_folder &&
           resume_step() == other.resume_step() &&
           !why_not_in_one_gang(trial_.config, other.trial_.config);
  }

  /// The step to resume from; 0 if from the beginning.
  std::int64_t resume_step() const { return trial_.resume ? trial_.resume->step : 0; }

  /// Reports the start and checks the trial's files. `gang`: the number of trials in the gang.
  void start(BackboneStore& backbones, std::size_t gang, const PlacementChoice& placement_of) {
    started_.numerics = numerics_of(trial_, gang);
    gang_ = gang;
    files_ = current_contents(trial_, backbones.digests());
    started_.backbone_digest = files_.backbone;
    started_.data_digests = files_.data;
    started_.provenance = provenance_of(trial_);
    write(started_);
    start_told_ = true;
    require_contents(trial_, files_, {trial_.backbone_digest, trial_.data_digests},
                     " as in trial.json: the files changed since the trial was planned (run the "
                     "sweep again to plan with the new ones)");
    placement_ = placement_of(trial_.config.training, trial_.device, sweeps::process_environment());
    if (const auto why = why_no_kernels(placement_.device)) {
      line() << "training on this GPU without petlab's faster kernels: " << *why << std::endl;
    }
    at::set_num_threads(static_cast<int>(trial_.threads));
  }

  /// Loads backbone and data, and resumes from the trial's checkpoint.
  std::unique_ptr<TrainingTrial> prepare(BackboneStore& backbones,
                                         const std::function<void(std::int64_t, double)>& on_step) {
    backbone_ = backbones.get(trial_.backbone_folder, placement_);
    const SharedTasks tasks = backbones.data().get(data_key(), [&] {
      auto loaded = load_tasks(trial_.tasks, trial_.config.data, trial_.data_folders, *backbone_);
      // Checks the files again, now that all of them have been read.
      require_contents(trial_, current_contents(trial_, backbones.digests()), files_,
                       " as when the trial started: the files changed while they were read");
      return loaded;
    });
    auto training = std::make_unique<TrainingTrial>(trial_.config, tasks, backbone_->pretrained(),
                                                    observer(on_step));
    kept_for_others_ = backbones.bytes_of_others();
    if (trial_.resume) {
      const auto file = directory_.folder() / trial_.resume->checkpoint;
      const TrialCheckpoint from = read_checkpoint(file, trial_.trial_id);
      training->restore(from.state, from.tensors);
      line() << "resumed at step " << from.state.step << " from " << file.string() << std::endl;
    }
    line() << "trial " << trial_.trial_id << ", attempt " << trial_.attempt << ": "
           << training->order().steps() << " steps"
           << (gang_ > 1 ? ", in a gang of " + std::to_string(gang_) : "") << std::endl;
    training_ = training.get();
    return training;
  }

  /// Saves the trial, which is asked to stop with the worker.
  void interrupt() {
    checkpoint();
    line() << "interrupted at step " << training_->state().step << std::endl;
    outcome_ = TrialOutcome::interrupted;
  }

  const Placement& placement() const { return placement_; }
  /// Absent until the attempt is over.
  const std::optional<TrialOutcome>& outcome() const { return outcome_; }

 private:
  void write(decltype(protocol::Event::body) body) {
    if (!events_) events_.emplace(directory_.events(), clock_);
    events_->write(std::move(body));
  }

  /// Begins a line of the log. In a gang, lines name their trial.
  std::ostream& line() {
    if (gang_ > 1) log_ << trial_.trial_id << ": ";
    return log_;
  }

  LoopObserver observer(const std::function<void(std::int64_t, double)>& on_step) {
    LoopObserver observer;
    observer.on_step = [this, on_step](std::int64_t step, std::int64_t of, double loss) {
      if (on_step) on_step(step, loss);
      progress(step, of, loss);
    };
    observer.on_metric = [this](const protocol::Metric& metric) {
      line() << "step " << metric.step << ": " << metric.split << " " << metric.task << " "
             << metric.name << " " << (metric.value ? std::to_string(*metric.value) : "undefined")
             << std::endl;
      write(metric);
    };
    observer.on_checkpoint = [this] { checkpoint(); };
    observer.on_predictions = [this](const std::string& task, const ScoredLines& lines) {
      if (lines.texts && !trial_.config.evaluation.keep_predictions) return;
      keep(directory_.gold_file(task, lines.texts), lines.gold);
      keep(directory_.predicted_file(task, lines.texts), lines.predicted);
    };
    observer.is_to_stop = [this] { return is_to_stop(); };
    observer.on_end = [this](const std::exception_ptr& failure) {
      attempt([&] {
        try {
          if (failure) std::rethrow_exception(failure);
        } catch (const Interrupted&) {
          return stop();
        }
        finish();
      });
    };
    return observer;
  }

  DataStore::Key data_key() const {
    ordered_json tasks = ordered_json::array();
    for (const sweeps::TaskDeclaration& task : trial_.tasks) tasks.push_back(sweeps::to_json(task));
    return {tasks.dump(), trial_.config.data, files_.data, backbone_->digest};
  }

  void progress(std::int64_t step, std::int64_t of, double loss) {
    loss_sum_ += loss;
    ++loss_steps_;
    const auto now = std::chrono::steady_clock::now();
    const bool due = now - last_progress_ >= kProgressEvery || step == of;
    protocol::Progress event{step, of, loss};
    if (due) event.device_memory_mib = peak_device_memory_mib(placement_.device);
    if (of <= kStepsAllReported) write(event);
    if (!due) return;
    last_progress_ = now;
    const double mean = loss_sum_ / static_cast<double>(loss_steps_);
    event.loss = mean;
    if (of > kStepsAllReported) write(event);
    line() << "step " << step << " of " << of << ", loss " << mean << std::endl;
    loss_sum_ = 0;
    loss_steps_ = 0;
  }

  /// Whether petlab asks to stop this trial alone.
  bool is_to_stop() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_look_ < kLookEvery) return false;
    last_look_ = now;
    std::error_code none;
    return std::filesystem::exists(directory_.stop(), none);
  }

  /// Saves the trial, which is asked to stop alone.
  void stop() {
    checkpoint();
    const std::int64_t step = training_->state().step;
    write(protocol::Stopped{step});
    line() << "stopped at step " << step << std::endl;
    outcome_ = TrialOutcome::stopped;
  }

  void checkpoint() {
    const std::int64_t step = training_->state().step;
    const std::string name = "step-" + std::to_string(step) + ".ckpt";
    std::filesystem::create_directories(directory_.checkpoint());
    const auto file = directory_.checkpoint() / name;
    write_checkpoint(file, {trial_.trial_id, training_->state(), training_->tensors()});
    const auto relative = std::filesystem::path(directory_.checkpoint().filename()) / name;
    write(protocol::Checkpoint{step, relative.string()});
    // Keeps two checkpoints: petlab falls back to the earlier one if a trial that resumed from the
    // latest crashes. A checkpoint written on a signal may replace the latest.
    std::erase(checkpoints_, file);
    checkpoints_.push_back(file);
    if (checkpoints_.size() <= 2) return;
    std::filesystem::remove(checkpoints_.front());
    checkpoints_.erase(checkpoints_.begin());
  }

  void keep(const std::filesystem::path& file, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    std::filesystem::create_directories(file.parent_path());
    const std::span<const std::byte> part = std::as_bytes(std::span(text));
    write_file_atomically(file, {&part, 1});
  }

  void finish() {
    Artifact artifact;
    artifact.trial_id = trial_.trial_id;
    artifact.config = sweeps::to_json(trial_.config).dump();
    artifact.backbone_digest = files_.backbone;
    artifact.numerics = kNumerics;
    artifact.step = *training_->state().best_step;
    store_model(training_->model(), trial_.config, trial_.tasks, artifact);
    write_artifact(directory_.artifact(), artifact);

    protocol::Finished finished;
    finished.step = training_->state().step;
    finished.artifact = directory_.artifact().filename().string();
    if (artifact.module) finished.bls_bits = metrics::bls_bits(*artifact.module);
    finished.stored_bits = stored_bits(artifact);
    if (const auto peak = peak_host_memory_mib()) {
      finished.peak_memory_mib = *peak - static_cast<double>(kept_for_others_) / (1 << 20);
    }
    finished.device_memory_mib = peak_device_memory_mib(placement_.device);
    finished.train_seconds = training_->state().train_seconds;
    for (const TaskRun& task : training_->tasks()) {
      finished.examples[task.declaration.name] = {{"train", task.train.size()},
                                                  {"validation", task.validation.size()},
                                                  {"test", task.test.size()}};
    }
    write(finished);
    line() << "finished; selected step " << artifact.step << std::endl;
    // A finished trial is never resumed.
    for (const std::filesystem::path& file : checkpoints_) std::filesystem::remove(file);
    outcome_ = TrialOutcome::finished;
  }

  const protocol::TrialDirectory directory_;
  const Clock& clock_;
  std::optional<EventLog> events_;  // from the first event on
  std::ostream& log_;
  protocol::TrialFile trial_;
  protocol::Started started_;
  bool start_told_ = false;
  std::size_t gang_ = 1;
  Placement placement_;
  FileContents files_;  // the contents to train on, as in the started event
  std::shared_ptr<const LoadedBackbone> backbone_;
  TrainingTrial* training_ = nullptr;  // owned by the loop
  std::optional<TrialOutcome> outcome_;
  std::int64_t kept_for_others_ = 0;                // bytes that are kept for other trials
  std::vector<std::filesystem::path> checkpoints_;  // of this attempt, newest last
  std::chrono::steady_clock::time_point last_progress_{}, last_look_{};
  double loss_sum_ = 0;
  std::int64_t loss_steps_ = 0;
};

/// Trains attempts that fit.
void train_together(const std::vector<AttemptRun*>& gang, BackboneStore& backbones,
                    const std::atomic<bool>& stop,
                    const std::function<void(std::int64_t step, double loss)>& on_step,
                    const PlacementChoice& placement_of) {
  for (AttemptRun* run : gang) {
    run->attempt([&] { run->start(backbones, gang.size(), placement_of); });
  }
  begin_host_memory();
  std::vector<AttemptRun*> runs;
  std::vector<std::unique_ptr<TrainingTrial>> trials;
  for (AttemptRun* run : gang) {
    run->attempt([&] {
      if (trials.empty()) begin_device_memory(run->placement().device);
      trials.push_back(run->prepare(backbones, on_step));
      runs.push_back(run);
    });
  }
  if (trials.empty()) return;
  TrainingLoop loop(std::move(trials));
  try {
    loop.run(stop);
  } catch (const Interrupted&) {
    for (AttemptRun* run : runs) run->attempt([run] { run->interrupt(); });
  } catch (...) {
    const auto left = std::count_if(runs.begin(), runs.end(),
                                    [](const AttemptRun* run) { return !run->outcome(); });
    for (AttemptRun* run : runs) {
      run->attempt([] { throw; }, static_cast<std::size_t>(left));
    }
  }
}

// The path of the library that the dynamic linker chose.
std::string libtorch_file() {
  Dl_info found;
  const bool known = ::dladdr(reinterpret_cast<const void*>(&at::globalContext), &found) != 0;
  return known ? found.dli_fname : "";
}

}  // namespace

// Which trials train_gang() trains together, as far as trial.json tells: why_not_in_one_gang().
ordered_json gangs() {
  ordered_json alone = ordered_json::array();
  for (const ModuleKind& kind : module_kinds()) {
    if (kind.trains_backbone) alone.push_back(kind.kind);
  }
  return {{"equal", {"backbone", "training.compute", "training.dropout", "module.prefix_length"}},
          {"alone", {{"module.kind", alone}}}};
}

std::string describe_worker() {
  return ordered_json{
      {"name", kWorkerName},   {"version", kVersion},  {"protocol", kProtocol},
      {"numerics", kNumerics}, {"devices", devices()}, {"gangs", gangs()},
      {"stops_trials", true},  {"max_gpus", 1},        {"libtorch", libtorch_file()}}
      .dump();
}

Placement placement_for(const sweeps::TrainingConfig& training, const std::string& device,
                        const sweeps::Environment& environment) {
  if (const std::optional<std::string> why = why_not_on(device)) {
    const std::string problem = "device is '" + device + "', which cannot be used here: " + *why;
    if (device == "cuda") throw DeviceError(problem);
    throw std::invalid_argument(problem);
  }
  const bool bf16 = training.compute == sweeps::ComputeType::bf16;
  if (bf16 && device == "cpu" && !multiplies_bf16() && environment(kEmulateVariable) != "1") {
    throw std::invalid_argument(
        "training.compute is 'bf16', for which this processor has no instructions (AVX512-BF16, "
        "AMX): " +
        base::this_machine().processor + "; " + kEmulateVariable +
        "=1 emulates it, many times slower");
  }
  return placement_on(device, bf16);
}

TokenisedSplit tokenise_inputs(const Split& split, const sweeps::TaskDeclaration& task,
                               const sweeps::DataConfig& data, const LoadedBackbone& backbone) {
  const std::int64_t most = std::min(data.max_tokens, backbone.model->max_tokens());
  const Tokenizer& tokenizer = *backbone.tokenizer;
  TokenisedSplit result =
      is_text_to_text(*backbone.model)
          ? tokenise_texts(split, task, tokenizer, {most, data.max_target_tokens})
          : tokenise(split, tokenizer, most);
  require_rows(result, tokenizer, backbone.model->shape(), "task " + task.name);
  return result;
}

std::vector<TaskRun> load_tasks(const std::vector<sweeps::TaskDeclaration>& tasks,
                                const sweeps::DataConfig& data,
                                const std::vector<std::filesystem::path>& data_folders,
                                const LoadedBackbone& backbone) {
  std::vector<TaskRun> runs;
  for (const sweeps::TaskDeclaration& task : tasks) {
    const TaskData read = load_task_data(task, sweeps::find_task_files(task, data_folders), data);
    runs.push_back({task, tokenise_inputs(read.train, task, data, backbone),
                    tokenise_inputs(read.validation, task, data, backbone),
                    tokenise_inputs(read.test, task, data, backbone)});
  }
  return runs;
}

TrialOutcome train_gang(const std::vector<std::filesystem::path>& folders, BackboneStore& backbones,
                        const std::atomic<bool>& stop, const Clock& clock, std::ostream& log,
                        const std::function<void(std::int64_t step, double loss)>& on_step,
                        const PlacementChoice& placement_of) {
  std::vector<std::unique_ptr<AttemptRun>> all;
  for (const std::filesystem::path& folder : folders) {
    all.push_back(std::make_unique<AttemptRun>(folder, clock, log));
    all.back()->attempt([&] { all.back()->read(); });
  }
  TrialOutcome worst = TrialOutcome::finished;
  for (const std::unique_ptr<AttemptRun>& first : all) {
    std::vector<AttemptRun*> gang;
    for (const std::unique_ptr<AttemptRun>& run : all) {
      if (!first->outcome() && !run->outcome() && (run == first || run->fits(*first))) {
        gang.push_back(run.get());
      }
    }
    if (!gang.empty()) train_together(gang, backbones, stop, on_step, placement_of);
    worst = std::max(worst, first->outcome().value_or(TrialOutcome::interrupted));
    for (const AttemptRun* run : gang) worst = std::max(worst, *run->outcome());
    if (worst >= TrialOutcome::interrupted) return worst;
  }
  return worst;
}

int train_gangs(const std::function<std::optional<std::vector<std::string>>()>& next,
                const std::function<TrialOutcome(const std::vector<std::string>&)>& train,
                const std::atomic<bool>& stop) {
  while (const auto gang = next()) {
    if (stop) return kStopped;
    const TrialOutcome outcome = train(*gang);
    if (outcome == TrialOutcome::interrupted) return kStopped;
    if (outcome == TrialOutcome::device_failed) return kDeviceFailed;
  }
  return kAllOver;
}

}  // namespace petlab::trainer
