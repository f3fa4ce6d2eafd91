#include "exports/mlflow.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/sha256.h"

namespace petlab::exports {
namespace {

namespace fs = std::filesystem;

// Limits of mlflow/utils/validation.py. Bytes, of which there are at least as many as characters.
constexpr std::size_t kLongestExperiment = 500;
constexpr std::size_t kLongestKey = 250;
constexpr std::size_t kLongestParameter = 6000;
constexpr std::size_t kLongestTag = 8000;
// Of a metric's three names, and their two slashes.
constexpr std::size_t kLongestPart = (kLongestKey - 2) / 3;
// MLflow's pattern without letters beyond ASCII, some of which it refuses, and without the colon,
// which it refuses on Windows.
constexpr std::string_view kNamePunctuation = "_.- ";

// mlflow.entities.RunStatus
int status_of(RunEnd end) {
  switch (end) {
    case RunEnd::running:
      return 1;
    case RunEnd::success:
      return 3;
    case RunEnd::failure:
      return 4;
    case RunEnd::unknown:
      break;
  }
  return 5;  // KILLED
}

std::string milliseconds(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.0f}", *seconds * 1000) : "null";
}

// A mapping of scalars as YAML, whose double-quoted texts may be JSON's.
class Meta {
 public:
  Meta& text(std::string_view key, const std::string& value) {
    return plain(
        key, nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
  Meta& plain(std::string_view key, std::string_view value) {
    text_ += fmt::format("{}: {}\n", key, value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Cut between characters, with "…" at the end.
std::string bounded(std::string text, std::size_t longest) {
  constexpr std::string_view kMore = "…";
  if (text.size() <= longest) return text;
  std::size_t end = longest - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  text.resize(end);
  return text.append(kMore);
}

// A metric's name, which MLflow also uses as a path below the run's folder.
std::string metric_name(const Point& point) {
  const auto part = [](const std::string& name) {
    return restricted_name(name, kNamePunctuation, kLongestPart);
  };
  if (point.task.empty()) return part(point.split) + "/" + part(point.name);
  // The file train/loss leaves no name for a folder. The slash is replaced, and a digest added.
  const std::string task = point.split == "train" && point.task == "loss" ? "loss/" : point.task;
  return fmt::format("{}/{}/{}", part(point.split), part(task), part(point.name));
}

}  // namespace

void MlflowWriter::write_experiment(const Run& run) {
  sweep_ = run.sweep;
  // A 60-bit number, as MLflow's own ids.
  experiment_ = std::to_string(std::stoull(
      base::sha256(sweep_).substr(std::string_view("sha256:").size(), 15), nullptr, 16));
  const std::string time = milliseconds(run.begun);
  write_new_file(folder_ / experiment_ / "meta.yaml",
                 Meta()
                     .text("experiment_id", experiment_)
                     .text("name", bounded(sweep_, kLongestExperiment))
                     .text("artifact_location", (place_ / experiment_).string())
                     .text("lifecycle_stage", "active")
                     .plain("creation_time", time)
                     .plain("last_update_time", time)
                     .text());
}

void MlflowWriter::write(const Run& run) {
  if (experiment_.empty() || run.sweep != sweep_) write_experiment(run);
  const std::string id = run.id();
  const fs::path folder = folder_ / experiment_ / id;
  std::map<std::string, std::string> metrics;  // lines by name
  for (const Point& point : run.points) {
    metrics[metric_name(point)] +=
        fmt::format("{} {} {}\n", milliseconds(point.time),
                    point.value ? fmt::format("{}", *point.value) : "nan", point.step);
  }
  for (const auto& [name, lines] : metrics) write_new_file(folder / "metrics" / name, lines);
  for (const auto& [name, value] : run.parameters) {
    write_new_file(folder / "params" / restricted_name(name, kNamePunctuation, kLongestKey),
                   bounded(text_of(value), kLongestParameter));
  }
  for (const auto& [name, value] : run.facts()) {
    write_new_file(folder / "tags" / name, bounded(value, kLongestTag));
  }
  write_new_file(folder / "tags/mlflow.runName", bounded(run.title(), kLongestTag));
  // MLflow ignores runs without these folders.
  for (const char* part : {"artifacts", "metrics", "params"}) make_folders(folder / part);
  write_new_file(folder / "meta.yaml",
                 Meta()
                     .text("artifact_uri", (place_ / experiment_ / id / "artifacts").string())
                     .plain("deleted_time", "null")
                     .plain("end_time", milliseconds(run.ended))
                     .text("entry_point_name", "")
                     .text("experiment_id", experiment_)
                     .text("lifecycle_stage", "active")
                     .text("run_id", id)
                     .text("run_name", bounded(run.title(), kLongestTag))
                     .text("run_uuid", id)
                     .text("source_name", "")
                     .plain("source_type", "4")
                     .text("source_version", "")
                     .plain("start_time", milliseconds(run.begun))
                     .plain("status", std::to_string(status_of(run.end)))
                     .plain("tags", "[]")
                     .text("user_id", "")
                     .text());
  count(run);
}

}  // namespace petlab::exports
