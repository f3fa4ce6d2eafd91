#include "sweeps/identity.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/files.h"
#include "base/sha256.h"
#include "base/shallow_json.h"
#include "base/shown.h"
#include "sweeps/backbone_files.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/fields.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

// The defaults of identity version 1, which never change; nor do those of the built-in kinds. A
// field is hashed if it differs from its value here, so a new default in TrialConfig changes no id.
// A new field needs a row with the value that describes the behaviour of earlier trials.
struct FrozenDefault {
  std::string_view field;
  json value;
};

const std::vector<FrozenDefault>& frozen_defaults() {
  static const std::vector<FrozenDefault> defaults = {
      {"seed", 42},
      {"module.kind", default_kind()},
      {"module.share", false},
      {"module.mask", "none"},
      {"module.sparsity_ratio", 0.5},
      {"module.bottleneck", 64},
      {"module.rank", 32},
      {"module.alpha", 32.0},
      {"module.prefix_length", 64},
      {"module.prefix_hidden", 512},
      {"training.epochs", 20},
      {"training.batch_size", 128},
      {"training.gradient_accumulation", 1},
      {"training.learning_rate", 1e-4},
      {"training.mask_learning_rate", 3e-3},
      {"training.weight_decay", 0.1},
      {"training.warmup_ratio", 0.1},
      {"training.max_grad_norm", 1.0},
      {"training.dropout", -1.0},
      {"data.max_tokens", 128},
      {"data.max_train_examples", 0},
      {"data.max_validation_examples", 0},
      {"data.max_test_examples", 0},
      {"module.combine", "or"},
      {"module.cross_attention", false},
      {"module.hyper_embedding", 64},
      {"module.hyper_hidden", 128},
      {"module.hyper_projected", 64},
      {"training.steps", 0},
      {"training.warmup_steps", 0},
      {"training.label_smoothing", 0.0},
      {"training.evaluate_every", 0},
      {"training.compute", "float32"},
      {"data.max_target_tokens", 128},
      {"decoding.beams", 1},
      {"decoding.length_penalty", 1.0},
      {"decoding.early_stopping", false},
      {"decoding.min_tokens", 0},
      {"decoding.max_tokens", 0},
      {"decoding.no_repeat_ngrams", 0},
  };
  return defaults;
}

const json* frozen_default(const TrialConfig& config, const Field& field) {
  if (field.declared != nullptr)
    return &field.declared->usual;  // frozen with its catalog's version
  if (config.catalog.empty()) {
    for (const KindDefault& preset : module_of(config)->defaults) {
      if (preset.field == field.name) return &preset.value;
    }
  }
  for (const FrozenDefault& row : frozen_defaults()) {
    if (row.field == field.name) return &row.value;
  }
  return nullptr;
}

std::string digest_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw Error(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  }
  base::Sha256 hash;
  std::vector<char> buffer(1 << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    hash.add(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) {
    throw Error(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  }
  return hash.finish();
}

bool is_file(const std::filesystem::path& path) {
  std::error_code unreadable;
  return std::filesystem::is_regular_file(path, unreadable);
}

}  // namespace

TrialId trial_id(const TrialConfig& config, std::string_view backbone_digest,
                 std::span<const std::string> task_digests) {
  json identity = {{"identity", 1}, {"backbone", backbone_digest}, {"tasks", task_digests}};
  if (!config.catalog.empty()) identity["catalog"] = config.catalog;
  for (const Field& field : fields()) {
    if (!field.hashed || !is_active(field, config)) continue;
    json value = field.get(config);
    const json* const usual = frozen_default(config, field);
    if (usual == nullptr || *usual != value) identity[std::string(field.name)] = std::move(value);
  }
  const json user = json::parse(config.user);
  for (const auto& [key, value] : user.items()) identity["user." + key] = value;
  return {base::sha256(identity.dump()).substr(7, 16)};
}

FileDigests::FileDigests(std::filesystem::path cache_folder) {
  if (cache_folder.empty()) return;
  cache_file_ = std::move(cache_folder) / "digests.json";
  try {
    const json cache =
        base::parse_shallow_json(base::read_file(cache_file_, 64 << 20), cache_file_.string());
    if (cache.at("v") != 1) return;
    for (const auto& [key, digest] : cache.at("digests").items()) {
      const auto& text = digest.get_ref<const std::string&>();
      if (text.size() == 71 && text.starts_with("sha256:")) known_[key] = text;
    }
  } catch (const std::exception&) {
    known_.clear();  // the cache may be damaged; missing digests are recomputed
  }
}

FileDigests::~FileDigests() { save(); }

std::string FileDigests::of(const std::filesystem::path& file) {
  const std::filesystem::path path = std::filesystem::absolute(file);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw Error(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(fmt::format("{}: found no regular file, expected one", file.string()));
  }
  const std::string key = fmt::format("{}|{}|{}.{:09}|{}", path.string(), status.st_size,
                                      status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const std::string digest = digest_of_file(path);
  known_[key] = digest;
  changed_ = true;
  return digest;
}

void FileDigests::save() noexcept {
  if (!changed_ || cache_file_.empty()) return;
  changed_ = false;
  try {
    std::filesystem::create_directories(cache_file_.parent_path());
    const json cache = {{"v", 1}, {"digests", known_}};
    base::write_file_atomically(cache_file_, cache.dump(1) + "\n");
  } catch (const std::exception&) {
    // A read-only home only costs the time for computing digests again.
  }
}

namespace {

// The names of the folder's files that match the patterns.
std::vector<std::string> matching_files(const std::filesystem::path& folder,
                                        std::span<const std::string> patterns) {
  std::set<std::string> names;
  for (const std::string& pattern : patterns) {
    bool matches = false;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!is_file(entry.path()) || ::fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
      names.insert(name);
      matches = true;
    }
    if (!matches) {
      throw Error(fmt::format("{}: found no file {}, expected what the worker's catalog names",
                              folder.string(), base::in_quotes(pattern)));
    }
  }
  return {names.begin(), names.end()};
}

// Configuration, weights and tokenizer.
std::vector<std::string> usual_files(const std::filesystem::path& folder) {
  std::vector<std::string> names = weight_files(folder);
  for (const std::string_view name : kBackboneFiles) {
    if (is_file(folder / name)) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string backbone_digest(const std::filesystem::path& folder, FileDigests& digests,
                            std::span<const std::string> files) {
  if (!is_file(folder / "config.json")) {
    throw Error(
        fmt::format("{}: config.json is missing, must be a backbone's folder", folder.string()));
  }
  const std::vector<std::string> names =
      files.empty() ? usual_files(folder) : matching_files(folder, files);
  std::string all;
  for (const std::string& name : names) {
    all += fmt::format("{} {}\n", digests.of(folder / name), name);
  }
  return base::sha256(all);
}

std::string data_digest(const TaskDeclaration& task,
                        std::span<const std::filesystem::path> data_folders, FileDigests& digests) {
  if (task.layouts.empty()) return {};
  const TaskFiles files = find_task_files(task, data_folders);
  std::string all = fmt::format("layout {}\n", to_string(task.layouts[files.layout].format));
  for (const std::filesystem::path& file : {files.train, files.validation, files.test}) {
    if (file.empty()) {
      all += "none\n";
      continue;
    }
    for (const std::string& part : file_parts(task.layouts[files.layout], file.string())) {
      all += digests.of(part) + "\n";
    }
  }
  return base::sha256(all);
}

}  // namespace petlab::sweeps
