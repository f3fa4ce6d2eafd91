#include "sweeps/sweep_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file_problems.h"
#include "base/shown.h"
#include "sweeps/catalog.h"
#include "sweeps/search.h"
#include "sweeps/setting_reader.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

constexpr std::array kSections = {"sweep",  "about", "base", "variants", "zip",
                                  "search", "grid",  "when", "exclude",  "stop_early"};

std::vector<std::string> words(const auto& list) { return {std::begin(list), std::end(list)}; }

std::string joined(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

constexpr std::size_t kMostNameBytes = 100;
constexpr std::string_view kNameWanted =
    "a name of 1 to 100 bytes without line breaks, tabs and other control characters";

bool is_printable(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kMostNameBytes && is_printable(text);
}

// Describes an invalid name, including problems that printing it would not show.
std::string found_name(const std::string& text) {
  if (text.size() <= kMostNameBytes) return base::shown(json(text));
  return fmt::format("{} ({} bytes)", base::shown(json(text)), text.size());
}

class SweepReader {
 public:
  SweepReader(const std::filesystem::path& file, const Locations& locations,
              base::FileProblems& problems, std::string_view catalog,
              std::span<const SearchPoint> suggested)
      : problems_(problems), suggested_(suggested), reader_(file, locations, problems, draft_) {
    draft_.catalog = catalog;
    if (const WorkerCatalog* const known = find_catalog(catalog)) {
      // A trial without a backbone needs only its fields for a storage formula.
      const bool has_backbones = !known->backbones || !known->backbones->empty();
      if (!known->kinds.empty() && !has_backbones) draft_.backbone_shapes[""] = {};
    }
    if (const WorkerCatalog* const declared = find_catalog(catalog)) {
      for (const TaskDeclaration& task : declared->tasks) draft_.declared[task.name] = task;
    }
  }

  SweepDraft read(const base::YamlNode& root) {
    if (!root.is_map()) {
      // Problems of an empty or broken document were reported by the parser.
      if (problems_.empty()) {
        problems_.add(root.line, "the file", base::shown(root), "the sections of a sweep");
      }
      return std::move(draft_);
    }
    for (const auto& [key, line] : root.keys) {
      if (std::find(kSections.begin(), kSections.end(), key) != kSections.end()) continue;
      const std::vector<std::string> known = words(kSections);
      problems_.add(line, "sweep file", base::shown(json(key)),
                    with_nearest("a section: " + joined(known), key, known));
    }
    read_names(root);
    // Read variants before references to them, and values before conditions on declared tasks.
    const base::YamlNode* const base = section(root, "base");
    // An invalid base was reported, so missing tasks and backbones need no further report.
    if (const base::YamlNode* const any = root.find("base");
        base == nullptr && any != nullptr && !any->is_null()) {
      draft_.refused = {"backbone", "task"};
    }
    if (base != nullptr) {
      draft_.base_line = base->line;
      draft_.base = reader_.settings("base", *base);
    }
    read_variants(root.find("variants"));
    read_zip(root.find("zip"));
    if (const base::YamlNode* const search = section(root, "search")) {
      draft_.search_axis = draft_.axes.size();
      draft_.axes.push_back(read_search(*search, suggested_, reader_, draft_, problems_));
    }
    read_grid(root.find("grid"));
    read_rules(root.find("when"), "when", draft_.when);
    read_rules(root.find("exclude"), "exclude", draft_.exclude);
    read_early_stop(root.find("stop_early"));
    check_matches();
    return std::move(draft_);
  }

 private:
  const base::YamlNode* section(const base::YamlNode& root, const char* name) {
    const base::YamlNode* const node = root.find(name);
    if (node == nullptr || node->is_null()) return nullptr;
    if (node->is_map()) return node;
    problems_.add(node->line, name, base::shown(*node), "a group of keys");
    return nullptr;
  }

  void read_names(const base::YamlNode& root) {
    draft_.name = read_sweep_name(root, problems_);
    const base::YamlNode* const about = root.find("about");
    if (about == nullptr || about->is_null()) return;
    if (!about->is_scalar()) {
      problems_.add(about->line, "about", base::shown(*about), "text");
    } else {
      draft_.about = about->text;
    }
  }

  void read_variants(const base::YamlNode* node) {
    if (node == nullptr) {
      draft_.variants.push_back({});
      return;
    }
    if (!node->is_map() || node->items.empty()) {
      problems_.add(node->line, "variants", node->is_map() ? "no variant" : base::shown(*node),
                    "named groups of keys");
      variants_known_ = false;
      draft_.variants.push_back({});
      return;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const auto& [name, line] = node->keys[i];
      if (!is_name(name)) {
        problems_.add(line, "variants", found_name(name), kNameWanted);
        variants_known_ = false;
        continue;
      }
      const base::YamlNode& value = node->items[i];
      Variant variant{name, line, {}};
      if (value.is_map()) {
        variant.settings = reader_.settings("variants." + name, value);
      } else if (!value.is_null()) {
        problems_.add(value.line, "variants." + name, base::shown(value), "a group of keys");
      }
      draft_.variants.push_back(std::move(variant));
    }
    if (draft_.variants.empty()) draft_.variants.push_back({});
  }

  void read_zip(const base::YamlNode* node) {
    if (node == nullptr || node->is_null()) return;
    if (!node->is_sequence()) {
      problems_.add(node->line, "zip", base::shown(*node), "a list of groups of lists");
      return;
    }
    for (const base::YamlNode& group : node->items) {
      if (!group.is_map() || group.items.empty()) {
        problems_.add(group.line, "zip", group.is_map() ? "an empty group" : base::shown(group),
                      "a group of lists");
        continue;
      }
      Axis axis{group.line, {}};
      bool equal = true;
      std::string first;
      reader_.walk(
          "zip", group, [&](const std::string& name, int line, const base::YamlNode& written) {
            const base::YamlNode value = reader_.with_ranges(name, written);
            const std::vector<ListedSetting> list = reader_.list("zip", name, line, value);
            if (!value.is_sequence() || value.items.empty()) {
              equal = false;
              return;
            }
            if (first.empty()) {
              first = name;
              axis.points.resize(value.items.size());
            }
            if (axis.points.size() != value.items.size()) {
              problems_.add(line, "zip", fmt::format("{} values of {}", value.items.size(), name),
                            fmt::format("{} as of {}", axis.points.size(), first));
              equal = false;
              return;
            }
            // A rejected value is missing from its point.
            for (const ListedSetting& one : list) axis.points[one.at].push_back(one.setting);
          });
      if (equal && !axis.points.empty()) draft_.axes.push_back(std::move(axis));
    }
  }

  void read_grid(const base::YamlNode* node) {
    if (node == nullptr || node->is_null()) return;
    if (!node->is_map()) {
      problems_.add(node->line, "grid", base::shown(*node), "a group of lists");
      return;
    }
    reader_.walk("grid", *node,
                 [&](const std::string& name, int line, const base::YamlNode& value) {
                   Axis axis{line, {}};
                   for (ListedSetting& one :
                        reader_.list("grid", name, line, reader_.with_ranges(name, value))) {
                     axis.points.push_back({std::move(one.setting)});
                   }
                   if (!axis.points.empty()) draft_.axes.push_back(std::move(axis));
                 });
  }

  void read_rules(const base::YamlNode* node, const std::string& name, std::vector<Rule>& rules) {
    if (node == nullptr || node->is_null()) return;
    const bool sets = name == "when";
    const char* const wanted = sets ? "a list of {if: {…}, set: {…}}" : "a list of groups of keys";
    if (!node->is_sequence()) {
      problems_.add(node->line, name, base::shown(*node), wanted);
      return;
    }
    for (const base::YamlNode& entry : node->items) {
      if (!entry.is_map() || entry.items.empty()) {
        problems_.add(entry.line, name, entry.is_map() ? "an empty group" : base::shown(entry),
                      wanted);
        continue;
      }
      Rule rule{entry.line, {}, {}};
      if (!sets) {
        rule.conditions = conditions(name, entry);
        if (!rule.conditions.empty()) rules.push_back(std::move(rule));
        continue;
      }
      for (const auto& [key, line] : entry.keys) {
        if (key != "if" && key != "set")
          problems_.add(line, name, base::shown(json(key)), "if and set");
      }
      const base::YamlNode* const condition = entry.find("if");
      const base::YamlNode* const set = entry.find("set");
      for (const auto& [key, part] : {std::pair("if", condition), std::pair("set", set)}) {
        if (part != nullptr && part->is_map() && !part->items.empty()) continue;
        problems_.add(part == nullptr ? entry.line : part->line, fmt::format("{}.{}", name, key),
                      part == nullptr  ? "nothing"
                      : part->is_map() ? "an empty group"
                                       : base::shown(*part),
                      "a group of keys");
      }
      if (condition != nullptr && condition->is_map()) {
        rule.conditions = conditions("when.if", *condition);
      }
      if (set != nullptr && set->is_map()) rule.set = reader_.settings("when.set", *set);
      if (!rule.conditions.empty()) rules.push_back(std::move(rule));
    }
  }

  void read_early_stop(const base::YamlNode* node) {
    if (node == nullptr || node->is_null()) return;
    draft_.early_stop_line = node->line;
    draft_.early_stop = sweeps::read_early_stop(*node, problems_);
    const std::string& against = draft_.early_stop->against;
    if (!against.empty()) check_variant("stop_early.against", node->line, against);
  }

  std::vector<Condition> conditions(const std::string& where, const base::YamlNode& node) {
    std::vector<Condition> list;
    bool complete = true;
    reader_.walk(where, node,
                 [&](const std::string& name, int line, const base::YamlNode& written) {
                   const base::YamlNode value = reader_.with_ranges(name, written);
                   Condition condition;
                   condition.name = name;
                   Setting setting;
                   if (name == "variant") {
                     condition.target = Target::variant;
                   } else if (reader_.find_target(where, name, line, setting)) {
                     condition.target = setting.target;
                     condition.field = setting.field;
                     condition.name = setting.name;
                   } else {
                     complete = false;
                     return;
                   }
                   // A single value, or any of a list. For `tasks`, a single value is a list.
                   const bool several = value.is_sequence() && name != "tasks";
                   const std::vector<base::YamlNode> one{several ? base::YamlNode() : value};
                   for (const base::YamlNode& item : several ? value.items : one) {
                     if (condition.target == Target::variant) {
                       complete = read_variant_name(where, item, condition) && complete;
                       continue;
                     }
                     Setting wanted = setting;
                     if (reader_.read_value(wanted, item, false)) {
                       condition.any_of.push_back(std::get<json>(wanted.value));
                     } else {
                       complete = false;
                     }
                   }
                   if (several && value.items.empty()) {
                     problems_.add(value.line, where + "." + name, "an empty list",
                                   "a value, or a list of some");
                     complete = false;
                   }
                   list.push_back(std::move(condition));
                 });
    // Drop the rule: without one of its conditions it would hold too often.
    if (!complete) list.clear();
    return list;
  }

  bool read_variant_name(const std::string& where, const base::YamlNode& node,
                         Condition& condition) {
    if (!node.is_scalar()) {
      problems_.add(node.line, where + ".variant", base::shown(node), "the name of a variant");
      return false;
    }
    condition.any_of.emplace_back(node.text);
    return check_variant(where + ".variant", node.line, node.text);
  }

  bool check_variant(const std::string& where, int line, const std::string& name) {
    if (!variants_known_) return false;
    std::vector<std::string> known;
    for (const Variant& variant : draft_.variants) {
      if (variant.name == name && !name.empty()) return true;
      known.push_back(variant.name);
    }
    problems_.add(line, where, base::shown(json(name)),
                  with_nearest("the name of a variant", name, known));
    return false;
  }

  void check_matches() {
    for (const SettingReader::Match& match : reader_.matches()) {
      check_variant(match.field + ".match_storage_of", match.line, match.variant);
    }
  }

  base::FileProblems& problems_;
  std::span<const SearchPoint> suggested_;
  SweepDraft draft_;
  SettingReader reader_;
  bool variants_known_ = true;
};

}  // namespace

std::string read_sweep_name(const base::YamlNode& root, base::FileProblems& problems) {
  const base::YamlNode* const name = root.find("sweep");
  if (name == nullptr) {
    problems.add(1, "sweep", "nothing", kNameWanted);
  } else if (!name->is_scalar()) {
    problems.add(name->line, "sweep", base::shown(*name), kNameWanted);
  } else if (!is_name(name->text)) {
    problems.add(name->line, "sweep", found_name(name->text), kNameWanted);
  } else {
    return name->text;
  }
  return {};
}

SweepDraft read_sweep(const base::YamlNode& root, const std::filesystem::path& file,
                      const Locations& locations, base::FileProblems& problems,
                      std::string_view catalog, std::span<const SearchPoint> suggested) {
  return SweepReader(file, locations, problems, catalog, suggested).read(root);
}

}  // namespace petlab::sweeps
