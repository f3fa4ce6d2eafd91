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
  // One byte above the limit of a YAML file, so that it is the parser that reports it, with its
  // line.
  const std::string bytes = read_file(file, 4 * kMaxYamlBytes);
  FileProblems problems(file);
  const YamlNode root = parse_yaml(bytes, problems);
  SweepDraft draft = read_sweep(root, file, locations, problems);
  Sweep sweep;
  sweep.file = file;
  sweep.digest = sha256(bytes);
  if (root.is_map()) expand_sweep(draft, problems, sweep);
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
