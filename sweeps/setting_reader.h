#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file_problems.h"
#include "base/yaml_tree.h"
#include "sweeps/identity.h"
#include "sweeps/locations.h"
#include "sweeps/sweep_reader.h"

namespace petlab::sweeps {

/// A value of a list, and its index there.
struct ListedSetting {
  std::size_t at = 0;
  Setting setting;
};

/// True for an integer that exceeds a signed 64-bit integer. SQLite, JSON readers and pandas would
/// each show another number, and two different ones as equal.
bool is_too_large(const base::YamlNode& node, const nlohmann::json& value);

/// Reads `key: value` from any section of a sweep file: finds the key's target and checks the
/// value. Declared tasks and named backbones are read once each and go into the draft. All problems
/// go to `problems`.
class SettingReader {
 public:
  /// The references must outlive this object. Paths are relative to `file`, the sweep file.
  SettingReader(const std::filesystem::path& file, const Locations& locations,
                base::FileProblems& problems, SweepDraft& draft)
      : file_(file),
        locations_(locations),
        problems_(problems),
        draft_(draft),
        digests_(locations.cache()) {}

  /// Sets the target of the key `name`; false if it is unknown.
  bool find_target(const std::string& where, const std::string& name, int line, Setting& setting);
  /// Sets the value; false if it is invalid for the key. `may_match` is true in trials, which allow
  /// `{match_storage_of: VARIANT}`, and false in conditions.
  bool read_value(Setting& setting, const base::YamlNode& node, bool may_match);

  using OnKey = std::function<void(const std::string& name, int line, const base::YamlNode& value)>;
  /// Calls `on_key` with the dotted name of every key, including those in groups. Reports repeated
  /// names.
  void walk(const std::string& where, const base::YamlNode& node, const OnKey& on_key);
  /// The settings of a group of keys.
  std::vector<Setting> settings(const std::string& where, const base::YamlNode& node);
  /// The settings of `name: [value, …]`. Invalid values are missing.
  std::vector<ListedSetting> list(const std::string& where, const std::string& name, int line,
                                  const base::YamlNode& value);
  /// Expands ranges of integer fields: `1..5` is a list, and may occur in lists.
  base::YamlNode with_ranges(const std::string& name, const base::YamlNode& value);

  /// A size to be solved, and the variant whose storage it must match.
  struct Match {
    int line;
    std::string field;
    std::string variant;
  };
  const std::vector<Match>& matches() const { return matches_; }

 private:
  bool read_good_value(Setting& setting, const base::YamlNode& node, bool may_match);
  bool read_whole(Setting& setting, const base::YamlNode& node, int least, int most);
  bool read_match(Setting& setting, const base::YamlNode& node, bool may_match);
  bool read_tasks(Setting& setting, const base::YamlNode& node);
  bool read_task(const base::YamlNode& node, nlohmann::json& names);
  bool declare(int line, const std::string& path, nlohmann::json& names);
  bool read_backbone(Setting& setting, const base::YamlNode& node);
  void read_shape(const std::string& name, const std::filesystem::path& folder);

  const std::filesystem::path& file_;
  const Locations& locations_;
  base::FileProblems& problems_;
  SweepDraft& draft_;
  FileDigests digests_;
  std::vector<Match> matches_;
  std::map<std::string, std::string> declared_by_path_;
  std::set<std::string> bad_backbones_;
};

}  // namespace petlab::sweeps
