// Expands a sweep's draft into trials: points of its axes, rules, solved sizes, ids. In one file
// because all steps share State.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/file_problems.h"
#include "base/shown.h"
#include "sweeps/catalog.h"
#include "sweeps/field_problems.h"
#include "sweeps/sweep_reader.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps {
namespace {

using nlohmann::json;

// The line that set each field; 0 if none did.
struct Lines {
  std::vector<int> fields = std::vector<int>(sweeps::fields().size());
  int tasks = 0;
  int user = 0;
};

struct Pending {
  const Field* field;
  std::string variant;
  int line;
};

// A trial under construction.
struct State {
  TrialConfig config;
  std::map<std::string, json> user;
  std::int64_t priority = 0;
  std::int64_t gpus = 1;
  Lines lines;
  std::vector<Pending> pending;
  std::string storage_note;
};

std::size_t index_of(const Field* field) {
  return static_cast<std::size_t>(field - sweeps::fields().data());
}

// The size whose storage is nearest to `wanted`, the smaller one in a tie. Storage must not
// decrease with size.
template <class Storage>
std::int64_t nearest_size(std::int64_t most, double wanted, Storage storage) {
  std::int64_t low = 1;
  std::int64_t high = most;
  while (low < high) {  // the first that is not below `wanted`
    const std::int64_t middle = low + (high - low) / 2;
    if (storage(middle) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low > 1 && wanted - storage(low - 1) <= std::abs(storage(low) - wanted)) --low;
  return low;
}

class Expander {
 public:
  Expander(const SweepDraft& draft, std::int64_t max_trials, base::FileProblems& problems,
           Sweep& sweep)
      : draft_(draft), max_trials_(max_trials), problems_(problems), sweep_(sweep) {
    for (const auto& [name, task] : draft.declared) declared_.push_back(task);
    for (std::size_t i = 0; i < draft.variants.size(); ++i) {
      variant_index_[draft.variants[i].name] = i;
    }
  }

  void expand(std::vector<std::size_t>* placed) {
    std::int64_t points = 1;
    for (const Axis& axis : draft_.axes) {
      const auto size = static_cast<std::int64_t>(axis.points.size());
      const auto variants = static_cast<std::int64_t>(draft_.variants.size());
      if (points > max_trials_ / size / variants) {
        problems_.add(axis.line, "the sweep", fmt::format("more than {} trials", max_trials_),
                      "fewer");
        return;
      }
      points *= size;
    }
    when_held_.assign(draft_.when.size(), false);
    exclude_held_.assign(draft_.exclude.size(), false);
    used_.assign(sweeps::fields().size(), false);
    unchanged_.assign(draft_.axes.size(), {});
    for (std::size_t variant = 0; variant < draft_.variants.size(); ++variant) {
      std::vector<std::size_t> trials;  // by point
      for (std::int64_t point = 0; point < points; ++point) {
        trials.push_back(add_trial(variant, point));
      }
      find_unchanged(variant, trials);
      if (placed != nullptr) placed->insert(placed->end(), trials.begin(), trials.end());
    }
    if (sweep_.trials.empty() && problems_.empty()) {
      problems_.add(draft_.exclude.empty() ? 1 : draft_.exclude.front().line, "exclude",
                    "rules that leave no trial", "rules that leave some");
    }
    write_notes();
  }

 private:
  void apply(State& state, const Setting& setting) {
    switch (setting.target) {
      case Target::tasks:
        state.config.tasks.clear();
        for (const json& name : std::get<json>(setting.value)) {
          state.config.tasks.push_back(name.get<std::string>());
        }
        state.lines.tasks = setting.line;
        return;
      case Target::user:
        state.user[setting.name] = std::get<json>(setting.value);
        state.lines.user = setting.line;
        return;
      case Target::priority:
        state.priority = std::get<json>(setting.value).get<std::int64_t>();
        return;
      case Target::gpus:
        state.gpus = std::get<json>(setting.value).get<std::int64_t>();
        return;
      case Target::variant:
        return;
      case Target::field:
        break;
    }
    state.lines.fields[index_of(setting.field)] = setting.line;
    std::erase_if(state.pending, [&](const Pending& p) { return p.field == setting.field; });
    if (const auto* match = std::get_if<MatchStorage>(&setting.value)) {
      state.pending.push_back({setting.field, match->variant, setting.line});
      if (setting.field->get(state.config).is_null()) {  // a declared size, until it is solved
        setting.field->set(state.config, setting.field->declared->least.value_or(1));
      }
    } else {
      setting.field->set(state.config, std::get<json>(setting.value));
    }
  }

  // Fields that no line set get the defaults of the module's kind.
  static void apply_defaults(State& state) {
    for (const ModuleRow& row : modules()) {
      if (row.catalog != state.config.catalog) continue;
      for (const KindDefault& preset : row.defaults) {
        const Field* const field = find_field(preset.field);
        if (state.lines.fields[index_of(field)] != 0) continue;
        const bool is_own_kind = row.kind == state.config.module.kind;
        if (is_own_kind || find_own_default(state.config, preset.field) == nullptr) {
          field->set(state.config, is_own_kind ? preset.value : field->get(TrialConfig()));
        }
      }
    }
  }
  static const KindDefault* find_own_default(const TrialConfig& config, std::string_view field) {
    const ModuleRow* const row = module_of(config);
    if (row == nullptr) return nullptr;
    for (const KindDefault& preset : row->defaults) {
      if (preset.field == field) return &preset;
    }
    return nullptr;
  }

  bool holds(const Condition& condition, const State& state, std::size_t variant) const {
    json value;
    switch (condition.target) {
      case Target::variant:
        value = draft_.variants[variant].name;
        break;
      case Target::tasks:
        value = state.config.tasks;
        break;
      case Target::priority:
        value = state.priority;
        break;
      case Target::gpus:
        value = state.gpus;
        break;
      case Target::user: {
        const auto found = state.user.find(condition.name);
        if (found == state.user.end()) return false;
        value = found->second;
        break;
      }
      case Target::field: {
        // A field that does not apply to the trial, or is still unsolved, equals no value.
        const auto is_it = [&](const Pending& p) { return p.field == condition.field; };
        if (!is_active(*condition.field, state.config) ||
            std::any_of(state.pending.begin(), state.pending.end(), is_it)) {
          return false;
        }
        value = condition.field->get(state.config);
        break;
      }
    }
    return std::find(condition.any_of.begin(), condition.any_of.end(), value) !=
           condition.any_of.end();
  }

  bool holds(const Rule& rule, const State& state, std::size_t variant) const {
    return std::all_of(
        rule.conditions.begin(), rule.conditions.end(),
        [&](const Condition& condition) { return holds(condition, state, variant); });
  }

  // Applies base, zip, grid, variant and `when`.
  State build(std::size_t variant, std::int64_t point) {
    State state;
    if (!draft_.catalog.empty()) {
      const std::vector<std::string> kinds = kinds_of(draft_.catalog);
      state.config.catalog = draft_.catalog;
      // Among several, the sweep must choose. The built-in kinds keep their default.
      if (kinds.size() == 1) state.config.module.kind = kinds.front();
      if (find_module(state.config.module.kind, draft_.catalog) == nullptr) {
        state.config.module.kind.clear();
      }
    }
    for (const Setting& setting : draft_.base) apply(state, setting);
    for (const Setting& setting : draft_.overrides) apply(state, setting);
    std::int64_t stride = 1;
    for (const Axis& axis : draft_.axes) stride *= static_cast<std::int64_t>(axis.points.size());
    for (const Axis& axis : draft_.axes) {  // the last axis varies fastest
      const auto size = static_cast<std::int64_t>(axis.points.size());
      stride /= size;
      for (const Setting& setting : axis.points[static_cast<std::size_t>(point / stride % size)]) {
        apply(state, setting);
      }
    }
    for (const Setting& setting : draft_.variants[variant].settings) apply(state, setting);
    apply_defaults(state);
    for (std::size_t i = 0; i < draft_.when.size(); ++i) {
      if (!holds(draft_.when[i], state, variant)) continue;
      when_held_[i] = true;
      for (const Setting& setting : draft_.when[i].set) apply(state, setting);
      apply_defaults(state);
    }
    return state;
  }

  // Solves the pending sizes. False if a problem was reported, now or earlier.
  bool solve(State& state, std::size_t variant, std::int64_t point,
             std::vector<std::size_t>& path) {
    std::erase_if(state.pending,
                  [&](const Pending& p) { return !is_active(*p.field, state.config); });
    if (state.pending.empty()) return true;
    const Pending open = state.pending.front();
    const std::string subject(open.field->name);
    if (state.pending.size() > 1) {
      problems_.add(open.line, subject,
                    fmt::format("match_storage_of, and for {} too", state.pending[1].field->name),
                    "one size to solve");
      return false;
    }
    const auto target = variant_index_.find(open.variant);
    if (target == variant_index_.end()) return false;  // reported when it was read
    path.push_back(variant);
    if (const auto start = std::find(path.begin(), path.end(), target->second);
        start != path.end()) {
      std::string cycle;
      for (auto step = start; step != path.end(); ++step) {
        cycle += draft_.variants[*step].name + " -> ";
      }
      problems_.add(open.line, subject,
                    fmt::format("a cycle of match_storage_of ({}{})", cycle, open.variant),
                    "a variant whose sizes are written");
      return false;
    }
    State other = build(target->second, point);
    if (!solve(other, target->second, point, path)) return false;
    path.pop_back();
    const BackboneShape* const shape = shape_of(state);
    if (shape == nullptr || state.config.tasks.empty()) return false;  // reported by validation
    const BackboneShape* const other_shape = shape_of(other);
    if (other_shape == nullptr || other.config.tasks.empty()) {
      if (!draft_.refused.contains("backbone") && !draft_.refused.contains("task")) {
        problems_.add(open.line, subject,
                      fmt::format("match_storage_of {}, which has no {}", open.variant,
                                  other_shape == nullptr ? "backbone" : "task"),
                      "a variant with both");
      }
      return false;
    }
    const ModuleRow* const row = module_of(other.config);
    if (row == nullptr || row->formula() == nullptr) {
      problems_.add(open.line, subject,
                    fmt::format("match_storage_of {}, whose module.kind is {}", open.variant,
                                other.config.module.kind),
                    "a variant with a storage formula");
      return false;
    }
    // Check both: the other may be excluded, and without a formula there is no size to solve.
    if (!check(other) || !check(state)) return false;
    solve_one(state, open, *shape, metrics::bls_bits(module_storage(other.config, *other_shape)));
    state.pending.clear();
    return true;
  }

  static void solve_one(State& state, const Pending& open, const BackboneShape& shape,
                        double wanted) {
    metrics::ModuleStorage storage = module_storage(state.config, shape);
    std::string solved;
    if (open.field->name == "module.sparsity_ratio") {
      constexpr std::int64_t kSteps = 10'000;  // four decimals
      const auto ratio = [](std::int64_t step) { return static_cast<double>(step) / kSteps; };
      storage.sparsity_ratio = ratio(nearest_size(kSteps, wanted, [&](std::int64_t step) {
        metrics::ModuleStorage tried = storage;
        tried.sparsity_ratio = ratio(step);
        return metrics::bls_bits(tried);
      }));
      state.config.module.sparsity_ratio = storage.sparsity_ratio;
      solved = fmt::format("{}", storage.sparsity_ratio);
    } else {
      storage.size = nearest_size(1 << 20, wanted, [&](std::int64_t size) {
        metrics::ModuleStorage tried = storage;
        tried.size = size;
        return metrics::bls_bits(tried);
      });
      open.field->set(state.config, storage.size);
      solved = std::to_string(storage.size);
    }
    const double difference = metrics::bls_bits(storage) - wanted;
    const double percent = 100 * std::abs(difference) / wanted;
    state.storage_note = fmt::format(
        "{} {} for the storage of {}: {}", open.field->name.substr(7), solved, open.variant,
        difference == 0 ? "equal"
                        : fmt::format("{:.0f} bits ({:.2f} %) {}", std::abs(difference), percent,
                                      difference > 0 ? "more" : "less"));
  }

  const BackboneShape* shape_of(const State& state) const {
    const auto found = draft_.backbone_shapes.find(state.config.backbone);
    return found == draft_.backbone_shapes.end() ? nullptr : &found->second;
  }

  // Adds a trial and returns its index in the sweep; kNoTrial if it is excluded or invalid.
  std::size_t add_trial(std::size_t variant, std::int64_t point) {
    State state = build(variant, point);
    std::vector<std::size_t> path;
    const bool solved = solve(state, variant, point, path);
    for (std::size_t i = 0; i < draft_.exclude.size(); ++i) {
      if (!holds(draft_.exclude[i], state, variant)) continue;
      exclude_held_[i] = true;
      return kNoTrial;
    }
    if (!state.user.empty()) state.config.user = json(state.user).dump();
    const bool valid = check(state);
    return solved && valid ? keep(std::move(state), variant) : kNoTrial;
  }

  // Records the lists of zip and grid that make no difference to the variant's trials.
  void find_unchanged(std::size_t variant, const std::vector<std::size_t>& trials) {
    std::size_t stride = trials.size();
    for (std::size_t axis = 0; axis < draft_.axes.size(); ++axis) {
      const std::size_t size = draft_.axes[axis].points.size();
      stride /= size;
      bool compared = false;
      bool equal = true;
      for (std::size_t first = 0; equal && first < trials.size(); ++first) {
        if (first / stride % size != 0) continue;
        std::size_t known = kNoTrial;
        for (std::size_t i = 0; i < size; ++i) {
          const std::size_t trial = trials[first + i * stride];
          if (trial == kNoTrial) continue;
          compared = compared || known != kNoTrial;
          equal = equal && (known == kNoTrial || known == trial);
          known = trial;
        }
      }
      if (compared && equal) unchanged_[axis].push_back(variant);
    }
  }

  bool check(const State& state) {
    std::vector<FieldProblem> found = field_problems(state.config, declared_);
    add_written_twice(state, found);
    if (const BackboneShape* const shape = shape_of(state)) {
      const auto of_backbone = backbone_problems(state.config, declared_, *shape);
      found.insert(found.end(), of_backbone.begin(), of_backbone.end());
    }
    for (const FieldProblem& problem : found) {
      const bool about_task = problem.field.starts_with("task");
      if (draft_.refused.contains(about_task ? "task" : problem.field)) continue;
      problems_.add(line_of(state, problem.field), problem.field, problem.found, problem.wanted);
    }
    return found.empty() && (!is_active(*find_field("backbone"), state.config) ||
                             draft_.backbone_digests.contains(state.config.backbone));
  }

  // Reports fields that are written in addition to the one that replaces them, even at their
  // default.
  static void add_written_twice(const State& state, std::vector<FieldProblem>& found) {
    const TrainingConfig& training = state.config.training;
    const auto add = [&](const char* name, const char* in_place, std::int64_t steps) {
      const bool known = std::any_of(found.begin(), found.end(), [&](const FieldProblem& problem) {
        return problem.field == name;
      });
      const Field* const field = find_field(name);
      if (steps == 0 || known || state.lines.fields[index_of(field)] == 0) return;
      found.push_back({name, base::shown(field->get(state.config)),
                       fmt::format("omitted when {} is set ({})", in_place, steps)});
    };
    add("training.epochs", "training.steps", training.steps);
    add("training.warmup_ratio", "training.warmup_steps", training.warmup_steps);
  }

  int line_of(const State& state, const std::string& name) const {
    int line = 0;
    if (const Field* const field = find_field(name)) {
      line = state.lines.fields[index_of(field)];
    } else {
      line = name.starts_with("task") ? state.lines.tasks : state.lines.user;
    }
    return line != 0 ? line : draft_.base_line;
  }

  const std::string& digest_of(const std::string& task) {
    std::string& digest = task_digests_[task];
    if (digest.empty()) {
      const auto declared = draft_.declared.find(task);
      const TaskDeclaration& declaration =
          declared == draft_.declared.end() ? *find_task(task) : declared->second;
      digest = task_digest(declaration);
      sweep_.tasks[task] = declaration;
    }
    return digest;
  }

  std::size_t keep(State state, std::size_t variant) {
    const TrialConfig& config = state.config;
    std::vector<std::string> digests;
    for (const std::string& task : config.tasks) digests.push_back(digest_of(task));
    const auto backbone = draft_.backbone_digests.find(config.backbone);
    const std::string& name = draft_.variants[variant].name;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      used_[i] = used_[i] || is_active(sweeps::fields()[i], config);
    }
    TrialId id = trial_id(
        config, backbone == draft_.backbone_digests.end() ? std::string() : backbone->second,
        digests);
    const auto [known, is_new] = trial_index_.emplace(id.value, sweep_.trials.size());
    if (!is_new) {
      SweepTrial& existing = sweep_.trials[known->second];
      // Variants are processed one after the other, each with all its points.
      if (!name.empty() && existing.variants.back() != name) existing.variants.push_back(name);
      existing.priority = std::max(existing.priority, state.priority);
      existing.gpus = std::max(existing.gpus, state.gpus);
      if (existing.storage_note.empty()) existing.storage_note = std::move(state.storage_note);
      return known->second;
    }
    SweepTrial trial;
    trial.id = std::move(id);
    if (!name.empty()) trial.variants.push_back(name);
    const auto shape = draft_.backbone_shapes.find(config.backbone);
    if (module_of(config)->formula() != nullptr && shape != draft_.backbone_shapes.end()) {
      trial.storage = module_storage(config, shape->second);
      trial.bls_bits = metrics::bls_bits(*trial.storage);
    }
    trial.storage_note = std::move(state.storage_note);
    trial.priority = state.priority;
    trial.gpus = state.gpus;
    trial.config = std::move(state.config);
    sweep_.trials.push_back(std::move(trial));
    return sweep_.trials.size() - 1;
  }

  void note_unused(const std::vector<Setting>& settings) {
    for (const Setting& setting : settings) {
      if (setting.target != Target::field || used_[index_of(setting.field)]) continue;
      sweep_.notes.push_back(
          fmt::format("{}:{}: {} is set, but no trial uses it with its module and switches",
                      sweep_.file.string(), setting.line, setting.name));
    }
  }

  // True if note_unused() reports the axis already: a field that no trial uses makes no difference.
  bool is_unused(const Axis& axis) const {
    return std::all_of(axis.points.front().begin(), axis.points.front().end(),
                       [&](const Setting& setting) {
                         return setting.target == Target::field && !used_[index_of(setting.field)];
                       });
  }

  void note_unchanged(const Axis& axis, const std::vector<std::size_t>& variants) {
    if (variants.empty() || is_unused(axis)) return;
    const std::vector<Setting>& settings = axis.points.front();
    std::vector<std::string> fields;
    for (const Setting& setting : settings) {
      fields.push_back((setting.target == Target::user ? "user." : "") + setting.name);
    }
    std::vector<std::string> names;
    bool all_set = true;  // true if the variants themselves set the fields of the list
    for (const std::size_t variant : variants) {
      const std::vector<Setting>& variant_settings = draft_.variants[variant].settings;
      if (!draft_.variants[variant].name.empty()) names.push_back(draft_.variants[variant].name);
      all_set =
          all_set && std::all_of(settings.begin(), settings.end(), [&](const Setting& setting) {
            return std::any_of(
                variant_settings.begin(), variant_settings.end(), [&](const Setting& other) {
                  return other.target == setting.target &&
                         (other.target == Target::tasks || other.name == setting.name);
                });
          });
    }
    sweep_.notes.push_back(
        fmt::format("{}:{}: the values of {} change nothing{}{}: equal trials are merged",
                    sweep_.file.string(), axis.line, fmt::join(fields, ", "),
                    names.empty() ? "" : fmt::format(" for {}", fmt::join(names, ", ")),
                    !all_set            ? ""
                    : names.size() == 1 ? ", which sets its own"
                                        : ", which set their own"));
  }

  void write_notes() {
    const auto note_rules = [&](const char* name, const std::vector<Rule>& rules,
                                const std::vector<bool>& held) {
      for (std::size_t i = 0; i < rules.size(); ++i) {
        if (held[i]) continue;
        sweep_.notes.push_back(fmt::format("{}:{}: this entry of {} matches no trial",
                                           sweep_.file.string(), rules[i].line, name));
      }
    };
    for (const std::string& note : draft_.search_notes) {
      sweep_.notes.push_back(fmt::format("{}: {}", sweep_.file.string(), note));
    }
    note_rules("when", draft_.when, when_held_);
    note_rules("exclude", draft_.exclude, exclude_held_);
    note_unused(draft_.base);
    for (const Setting& setting : draft_.overrides) {
      if (setting.target != Target::field || used_[index_of(setting.field)]) continue;
      sweep_.notes.push_back(
          fmt::format("--set {}: no trial uses it with its module and switches", setting.name));
    }
    for (const Variant& variant : draft_.variants) note_unused(variant.settings);
    for (const Axis& axis : draft_.axes) note_unused(axis.points.front());
    for (std::size_t axis = 0; axis < draft_.axes.size(); ++axis) {
      note_unchanged(draft_.axes[axis], unchanged_[axis]);
    }
    for (const Rule& rule : draft_.when) note_unused(rule.set);
  }

  const SweepDraft& draft_;
  std::int64_t max_trials_;
  base::FileProblems& problems_;
  Sweep& sweep_;
  std::vector<TaskDeclaration> declared_;
  std::map<std::string, std::size_t> variant_index_;
  std::map<std::string, std::string> task_digests_;
  std::unordered_map<std::string, std::size_t> trial_index_;
  std::vector<bool> when_held_;
  std::vector<bool> exclude_held_;
  std::vector<bool> used_;
  std::vector<std::vector<std::size_t>> unchanged_;  // variants, by axis
};

}  // namespace

void expand_sweep(const SweepDraft& draft, std::int64_t max_trials, base::FileProblems& problems,
                  Sweep& sweep, std::vector<std::size_t>* placed) {
  Expander(draft, max_trials, problems, sweep).expand(placed);
}

}  // namespace petlab::sweeps
