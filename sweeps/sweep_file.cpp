#include "sweeps/sweep_file.h"

#include <fmt/format.h>

#include "sweeps/files.h"
#include "sweeps/sweep_reader.h"
#include "sweeps/yaml_tree.h"

namespace petlab::sweeps {

SweepFileError::SweepFileError(std::vector<std::string> problems)
    : std::invalid_argument(fmt::format("{}", fmt::join(problems, "\n"))),
      problems_(std::move(problems)) {}

Sweep load_sweep(const std::filesystem::path& file, const Locations& locations) {
  // Far above the limit of a YAML file, so that it is the parser that reports what is too long.
  return read_sweep_text(read_file(file, 4 * kMaxYamlBytes), file, locations, kMaxTrials);
}

Sweep read_sweep_text(std::string_view text, const std::filesystem::path& file,
                      const Locations& locations, std::int64_t max_trials) {
  FileProblems problems(file);
  const YamlNode root = parse_yaml(text, problems);
  SweepDraft draft = read_sweep(root, file, locations, problems);
  Sweep sweep;
  sweep.file = file;
  sweep.digest = sha256(text);
  if (root.is_map()) expand_sweep(draft, max_trials, problems, sweep);
  problems.throw_if_any();
  sweep.name = std::move(draft.name);
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
