#include "sweeps/sweep_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file_problems.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/yaml_tree.h"
#include "metrics/metric_table.h"
#include "sweeps/overrides.h"
#include "sweeps/sweep_reader.h"

namespace petlab::sweeps {

namespace {

// Far above the limit of YAML files, so that the parser reports files that are too long.
constexpr std::size_t kMostSweepBytes = 4 * base::kMaxYamlBytes;

// The metrics of every task must say which of two trials is better.
void check_metric(const std::string& metric, int line, const char* key, const Sweep& sweep,
                  base::FileProblems& problems) {
  for (const auto& named : sweep.tasks) {
    const TaskDeclaration& task = named.second;
    const std::vector<std::string> compared =
        metric.empty() ? task.select_by : std::vector<std::string>{metric};
    const bool has_all = std::all_of(compared.begin(), compared.end(), [&](const auto& each) {
      const bool reported = task.metrics.empty() || std::ranges::count(task.metrics, each) > 0;
      return reported && metrics::higher_is_better(each).has_value();
    });
    if (has_all && !compared.empty()) continue;
    problems.add(line, key,
                 compared.empty() ? "nothing" : fmt::format("{}", fmt::join(compared, ", ")),
                 fmt::format("a metric of task {} whose better direction is known{}{}", task.name,
                             task.metrics.empty() ? "" : ": ", fmt::join(task.metrics, ", ")));
  }
}

std::string study_id(const Study& study, const Sweep& sweep) {
  nlohmann::ordered_json about = {
      {"by", "tpe"}, {"seed", study.seed}, {"startup", study.startup}, {"metric", study.metric}};
  for (const SearchedField& field : study.fields) {
    nlohmann::ordered_json one = {{"name", field.name}};
    if (field.range) {
      one["range"] = {field.range->is_log, field.range->low, field.range->high, field.is_whole};
    } else {
      one["choices"] = field.choices;
    }
    about["fields"].push_back(std::move(one));
  }
  for (const SweepTrial& trial : sweep.trials) about["trials"].push_back(trial.id.value);
  const std::string digest = base::sha256(about.dump());
  return digest.substr(digest.find(':') + 1, 16);
}

// Completes the study: the trials of its points, and its id if only the first points are known.
// `placed` is that of expand_sweep().
Study study_of(const SweepDraft& draft, const Sweep& sweep,
               const std::vector<std::size_t>& placed) {
  Study study = *draft.study;
  std::size_t stride = 1;
  for (std::size_t axis = draft.search_axis + 1; axis < draft.axes.size(); ++axis) {
    stride *= draft.axes[axis].points.size();
  }
  const std::size_t places = draft.axes[draft.search_axis].points.size();
  std::vector<std::set<std::size_t>> trials(places);
  for (std::size_t at = 0; at < placed.size(); ++at) {
    if (placed[at] != kNoTrial) trials[at / stride % places].insert(placed[at]);
  }
  for (const std::size_t place : draft.search_places) {
    study.trials_of.emplace_back(trials[place].begin(), trials[place].end());
  }
  study.id = study_id(study, sweep);
  return study;
}

Sweep read_with(std::string_view text, const std::filesystem::path& file,
                const Locations& locations, std::int64_t max_trials,
                std::span<const std::string> overrides, std::string_view catalog,
                std::span<const SearchPoint> suggested) {
  base::FileProblems problems(file);
  const base::YamlNode root = base::parse_yaml(text, problems);
  SweepDraft draft = read_sweep(root, file, locations, problems, catalog, suggested);
  Sweep sweep;
  sweep.catalog = catalog;
  sweep.file = file;
  sweep.digest = base::sha256(text);
  sweep.text = text;
  sweep.overrides.assign(overrides.begin(), overrides.end());
  std::vector<std::size_t> placed;
  if (root.is_map() && overrides.empty()) {
    expand_sweep(draft, max_trials, problems, sweep, draft.study ? &placed : nullptr);
  } else if (root.is_map()) {
    // Problems without the overrides are ignored, because the overrides may fix them.
    base::FileProblems ignored(file);
    Sweep plain;
    std::vector<std::size_t> before;
    expand_sweep(draft, max_trials, ignored, plain, &before);
    apply_overrides(draft, overrides, file, locations, sweep.notes);
    expand_sweep(draft, max_trials, problems, sweep, &placed);
    if (problems.empty()) check_overrides_merge_nothing(overrides, before, placed, file);
  }
  if (draft.early_stop) {
    check_metric(draft.early_stop->metric, draft.early_stop_line, "stop_early.metric", sweep,
                 problems);
  }
  if (draft.study) {
    check_metric(draft.study->metric, draft.search_line, "search.metric", sweep, problems);
  }
  problems.throw_if_any();
  if (draft.study) sweep.study = study_of(draft, sweep, placed);
  sweep.name = std::move(draft.name);
  sweep.early_stop = std::move(draft.early_stop);
  sweep.about = std::move(draft.about);
  for (const Variant& variant : draft.variants) {
    if (!variant.name.empty()) sweep.variants.push_back(variant.name);
  }
  sweep.backbone_folders = std::move(draft.backbone_folders);
  sweep.backbone_shapes = std::move(draft.backbone_shapes);
  sweep.backbone_digests = std::move(draft.backbone_digests);
  return sweep;
}

}  // namespace

std::string sweep_name(const std::filesystem::path& file) {
  base::FileProblems problems(file);
  const base::YamlNode root = base::parse_yaml(base::read_file(file, kMostSweepBytes), problems);
  problems.throw_if_any();
  std::string name = read_sweep_name(root, problems);
  problems.throw_if_any();
  return name;
}

Sweep load_sweep(const std::filesystem::path& file, const Locations& locations,
                 std::span<const std::string> overrides, std::string_view catalog,
                 const std::filesystem::path& points) {
  return read_sweep_text(base::read_file(file, kMostSweepBytes), file, locations, kMaxTrials,
                         overrides, catalog, points);
}

Sweep read_sweep_text(std::string_view text, const std::filesystem::path& file,
                      const Locations& locations, std::int64_t max_trials,
                      std::span<const std::string> overrides, std::string_view catalog,
                      const std::filesystem::path& points) {
  const auto read = [&](std::span<const SearchPoint> suggested) {
    return read_with(text, file, locations, max_trials, overrides, catalog, suggested);
  };
  // The study's first points say which file records the others.
  Sweep first = read({});
  if (!first.study || points.empty()) return first;
  const std::vector<SearchPoint> suggested = recorded_points(points, *first.study);
  if (suggested.empty()) return first;
  Sweep sweep = read(suggested);
  sweep.study->id = first.study->id;
  return sweep;
}

}  // namespace petlab::sweeps
