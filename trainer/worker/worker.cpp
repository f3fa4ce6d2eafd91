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
#include "trainer/worker/version.h"

namespace petlab::trainer {
namespace {

using nlohmann::ordered_json;

/// Trials up to this length report every step, so that two runs can be compared step by step.
constexpr std::int64_t kStepsAllReported = 2000;
/// The minimum time between progress events, and between log lines, of a longer trial.
constexpr std::chrono::milliseconds kProgressEvery{500};

std::string numerics_of(const protocol::TrialFile& trial) {
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
  numerics["gang"] = 1;
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

/// Trains one trial and writes its events.
class TrialRun {
 public:
  /// `files`: the contents to train on, as recorded in the started event.
  TrialRun(const protocol::TrialDirectory& directory, const protocol::TrialFile& trial,
           const Placement& placement, FileContents files, EventLog& events, std::ostream& log)
      : directory_(directory),
        trial_(trial),
        placement_(placement),
        files_(std::move(files)),
        events_(events),
        log_(log) {}

  TrialOutcome run(BackboneStore& backbones, const std::atomic<bool>& stop,
                   const std::function<void(std::int64_t, double)>& on_step) {
    const auto backbone = backbones.get(trial_.backbone_folder, placement_);
    LoopObserver observer;
    observer.on_step = [&](std::int64_t step, std::int64_t of, double loss) {
      if (on_step) on_step(step, loss);
      progress(step, of, loss);
    };
    observer.on_metric = [&](const protocol::Metric& metric) {
      log_ << "step " << metric.step << ": " << metric.split << " " << metric.task << " "
           << metric.name << " " << (metric.value ? std::to_string(*metric.value) : "undefined")
           << std::endl;
      events_.write(metric);
    };
    observer.on_checkpoint = [&] { checkpoint(); };
    observer.on_predictions = [&](const std::string& task, const ScoredLines& lines) {
      if (lines.texts && !trial_.config.evaluation.keep_predictions) return;
      keep(directory_.gold_file(task, lines.texts), lines.gold);
      keep(directory_.predicted_file(task, lines.texts), lines.predicted);
    };
    TrainingLoop loop(
        trial_.config,
        backbones.data().get(
            data_key(*backbone),
            [&] {
              auto loaded =
                  load_tasks(trial_.tasks, trial_.config.data, trial_.data_folders, *backbone);
              // Checks the files again, now that all of them have been read.
              require_contents(
                  trial_, current_contents(trial_, backbones.digests()), files_,
                  " as when the trial started: the files changed while they were read");
              return loaded;
            }),
        backbone->pretrained(), observer);
    loop_ = &loop;
    kept_for_others_ = backbones.bytes_of_others();
    if (trial_.resume) {
      const auto file = directory_.folder() / trial_.resume->checkpoint;
      const TrialCheckpoint from = read_checkpoint(file, trial_.trial_id);
      loop.restore(from.state, from.tensors);
      log_ << "resumed at step " << from.state.step << " from " << file.string() << std::endl;
    }
    log_ << "trial " << trial_.trial_id << ", attempt " << trial_.attempt << ": " << loop.steps()
         << " steps" << std::endl;
    try {
      loop.run(stop);
    } catch (const Interrupted&) {
      checkpoint();
      log_ << "interrupted at step " << loop.state().step << std::endl;
      return TrialOutcome::interrupted;
    }
    finish(loop);
    return TrialOutcome::finished;
  }

 private:
  DataStore::Key data_key(const LoadedBackbone& backbone) const {
    ordered_json tasks = ordered_json::array();
    for (const sweeps::TaskDeclaration& task : trial_.tasks) tasks.push_back(sweeps::to_json(task));
    return {tasks.dump(), trial_.config.data, files_.data, backbone.digest};
  }

  void progress(std::int64_t step, std::int64_t of, double loss) {
    loss_sum_ += loss;
    ++loss_steps_;
    const auto now = std::chrono::steady_clock::now();
    const bool due = now - last_progress_ >= kProgressEvery || step == of;
    protocol::Progress event{step, of, loss};
    if (due) event.device_memory_mib = peak_device_memory_mib(placement_.device);
    if (of <= kStepsAllReported) events_.write(event);
    if (!due) return;
    last_progress_ = now;
    const double mean = loss_sum_ / static_cast<double>(loss_steps_);
    event.loss = mean;
    if (of > kStepsAllReported) events_.write(event);
    log_ << "step " << step << " of " << of << ", loss " << mean << std::endl;
    loss_sum_ = 0;
    loss_steps_ = 0;
  }

  void checkpoint() {
    const std::int64_t step = loop_->state().step;
    const std::string name = "step-" + std::to_string(step) + ".ckpt";
    std::filesystem::create_directories(directory_.checkpoint());
    const auto file = directory_.checkpoint() / name;
    write_checkpoint(file, {trial_.trial_id, loop_->state(), loop_->tensors()});
    const auto relative = std::filesystem::path(directory_.checkpoint().filename()) / name;
    events_.write(protocol::Checkpoint{step, relative.string()});
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

  void finish(TrainingLoop& loop) {
    Artifact artifact;
    artifact.trial_id = trial_.trial_id;
    artifact.config = sweeps::to_json(trial_.config).dump();
    artifact.backbone_digest = files_.backbone;
    artifact.numerics = kNumerics;
    artifact.step = *loop.state().best_step;
    store_model(loop.model(), trial_.config, trial_.tasks, artifact);
    write_artifact(directory_.artifact(), artifact);

    protocol::Finished finished;
    finished.step = loop.state().step;
    finished.artifact = directory_.artifact().filename().string();
    if (artifact.module) finished.bls_bits = metrics::bls_bits(*artifact.module);
    finished.stored_bits = stored_bits(artifact);
    if (const auto peak = peak_host_memory_mib()) {
      finished.peak_memory_mib = *peak - static_cast<double>(kept_for_others_) / (1 << 20);
    }
    finished.device_memory_mib = peak_device_memory_mib(placement_.device);
    finished.train_seconds = loop.state().train_seconds;
    for (const TaskRun& task : loop.tasks()) {
      finished.examples[task.declaration.name] = {{"train", task.train.size()},
                                                  {"validation", task.validation.size()},
                                                  {"test", task.test.size()}};
    }
    events_.write(finished);
    log_ << "finished; selected step " << artifact.step << std::endl;
    // A finished trial is never resumed.
    for (const std::filesystem::path& file : checkpoints_) std::filesystem::remove(file);
  }

  const protocol::TrialDirectory& directory_;
  const protocol::TrialFile& trial_;
  const Placement placement_;
  const FileContents files_;
  EventLog& events_;
  std::ostream& log_;
  TrainingLoop* loop_ = nullptr;
  std::int64_t kept_for_others_ = 0;                // bytes that are kept for other trials
  std::vector<std::filesystem::path> checkpoints_;  // of this attempt, newest last
  std::chrono::steady_clock::time_point last_progress_{};
  double loss_sum_ = 0;
  std::int64_t loss_steps_ = 0;
};

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

// The path of the library that the dynamic linker chose.
std::string libtorch_file() {
  Dl_info found;
  const bool known = ::dladdr(reinterpret_cast<const void*>(&at::globalContext), &found) != 0;
  return known ? found.dli_fname : "";
}

}  // namespace

std::string describe_worker() {
  return ordered_json{{"name", kWorkerName},   {"version", kVersion},
                      {"protocol", kProtocol}, {"numerics", kNumerics},
                      {"devices", devices()},  {"libtorch", libtorch_file()}}
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

TrialOutcome train_trial(const std::filesystem::path& folder, BackboneStore& backbones,
                         const std::atomic<bool>& stop, const Clock& clock, std::ostream& log,
                         const std::function<void(std::int64_t step, double loss)>& on_step,
                         const PlacementChoice& placement_of) {
  const protocol::TrialDirectory directory(folder);
  EventLog events(directory.events(), clock);
  protocol::Started started;
  started.pid = ::getpid();
  started.worker = kWorkerName;
  started.version = kVersion;
  started.numerics = "{}";
  protocol::Failed failed;
  bool start_told = false;
  try {
    const protocol::TrialFile trial = protocol::read_trial_file(directory.trial_json());
    started.numerics = numerics_of(trial);
    FileContents files = current_contents(trial, backbones.digests());
    started.backbone_digest = files.backbone;
    started.data_digests = files.data;
    started.provenance = provenance_of(trial);
    events.write(started);
    start_told = true;
    require_contents(trial, files, {trial.backbone_digest, trial.data_digests},
                     " as in trial.json: the files changed since the trial was planned (run the "
                     "sweep again to plan with the new ones)");
    const Placement placement =
        placement_of(trial.config.training, trial.device, sweeps::process_environment());
    if (const auto why = why_no_kernels(placement.device)) {
      log << "training on this GPU without petlab's faster kernels: " << *why << std::endl;
    }
    at::set_num_threads(static_cast<int>(trial.threads));
    begin_host_memory();
    begin_device_memory(placement.device);
    return TrialRun(directory, trial, placement, std::move(files), events, log)
        .run(backbones, stop, on_step);
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
  failed.reason = protocol::bounded_reason(failed.reason);
  log << "failed: " << failed.reason << std::endl;
  if (!start_told) events.write(started);
  events.write(failed);
  return failed.kind == "device" ? TrialOutcome::device_failed : TrialOutcome::failed;
}

int train_gangs(const std::function<std::optional<std::vector<std::string>>()>& next,
                const std::function<TrialOutcome(const std::string&)>& train,
                const std::atomic<bool>& stop) {
  while (const auto gang = next()) {
    for (const std::string& folder : *gang) {
      if (stop) return kStopped;
      const TrialOutcome outcome = train(folder);
      if (outcome == TrialOutcome::interrupted) return kStopped;
      if (outcome == TrialOutcome::device_failed) return kDeviceFailed;
    }
  }
  return kAllOver;
}

}  // namespace petlab::trainer
