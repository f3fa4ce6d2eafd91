#include "sweeps/sweep_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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
void check_early_stop(const SweepDraft& draft, const Sweep& sweep, base::FileProblems& problems) {
  if (!draft.early_stop) return;
  const std::string& metric = draft.early_stop->metric;
  for (const auto& named : sweep.tasks) {
    const TaskDeclaration& task = named.second;
    const std::vector<std::string> compared =
        metric.empty() ? task.select_by : std::vector<std::string>{metric};
    const bool has_all = std::all_of(compared.begin(), compared.end(), [&](const auto& each) {
      const bool reported = task.metrics.empty() || std::ranges::count(task.metrics, each) > 0;
      return reported && metrics::higher_is_better(each).has_value();
    });
    if (has_all && !compared.empty()) continue;
    problems.add(draft.early_stop_line, "stop_early.metric",
                 compared.empty() ? "nothing" : fmt::format("{}", fmt::join(compared, ", ")),
                 fmt::format("a metric of task {} whose better direction is known{}{}", task.name,
                             task.metrics.empty() ? "" : ": ", fmt::join(task.metrics, ", ")));
  }
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
                 std::span<const std::string> overrides, std::string_view catalog) {
  return read_sweep_text(base::read_file(file, kMostSweepBytes), file, locations, kMaxTrials,
                         overrides, catalog);
}

Sweep read_sweep_text(std::string_view text, const std::filesystem::path& file,
                      const Locations& locations, std::int64_t max_trials,
                      std::span<const std::string> overrides, std::string_view catalog) {
  base::FileProblems problems(file);
  const base::YamlNode root = base::parse_yaml(text, problems);
  SweepDraft draft = read_sweep(root, file, locations, problems, catalog);
  Sweep sweep;
  sweep.catalog = catalog;
  sweep.file = file;
  sweep.digest = base::sha256(text);
  sweep.text = text;
  sweep.overrides.assign(overrides.begin(), overrides.end());
  if (root.is_map() && overrides.empty()) {
    expand_sweep(draft, max_trials, problems, sweep);
  } else if (root.is_map()) {
    // Problems without the overrides are ignored, because the overrides may fix them.
    base::FileProblems ignored(file);
    Sweep plain;
    std::vector<std::size_t> before;
    expand_sweep(draft, max_trials, ignored, plain, &before);
    apply_overrides(draft, overrides, file, locations, sweep.notes);
    std::vector<std::size_t> after;
    expand_sweep(draft, max_trials, problems, sweep, &after);
    if (problems.empty()) check_overrides_merge_nothing(overrides, before, after, file);
  }
  check_early_stop(draft, sweep, problems);
  problems.throw_if_any();
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

}  // namespace petlab::sweeps
