#include "sweeps/sweep_file.h"

#include <fmt/format.h>

#include "base/file_problems.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/yaml_tree.h"
#include "sweeps/sweep_reader.h"

namespace petlab::sweeps {

Sweep load_sweep(const std::filesystem::path& file, const Locations& locations) {
  // Far above the limit of a YAML file, so that it is the parser that reports what is too long.
  return read_sweep_text(base::read_file(file, 4 * base::kMaxYamlBytes), file, locations,
                         kMaxTrials);
}

Sweep read_sweep_text(std::string_view text, const std::filesystem::path& file,
                      const Locations& locations, std::int64_t max_trials) {
  base::FileProblems problems(file);
  const base::YamlNode root = base::parse_yaml(text, problems);
  SweepDraft draft = read_sweep(root, file, locations, problems);
  Sweep sweep;
  sweep.file = file;
  sweep.digest = base::sha256(text);
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
