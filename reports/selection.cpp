#include "reports/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace petlab::reports {
namespace {

// A parsed `{…}` of a text.
struct Placeholder {
  std::string field;
  std::optional<double> factor;
  std::optional<std::string> otherwise;
};

Placeholder placeholder_from(std::string inside) {
  Placeholder result;
  if (const std::size_t bar = inside.find('|'); bar != std::string::npos) {
    result.otherwise = inside.substr(bar + 1);
    inside.resize(bar);
  }
  if (const std::size_t star = inside.find('*'); star != std::string::npos) {
    double factor = 1;
    const char* end = inside.data() + inside.size();
    if (const auto read = std::from_chars(inside.data() + star + 1, end, factor);
        read.ec == std::errc() && read.ptr == end) {
      result.factor = factor;
      inside.resize(star);
    }
  }
  result.field = inside;
  return result;
}

// Calls plain(text) and placeholder(inside) for the parts of `text`, in order.
template <typename Plain, typename Inside>
void take_apart(const std::string& text, Plain plain, Inside placeholder) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) break;
    plain(text.substr(at, open - at));
    placeholder(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  plain(text.substr(std::min(at, text.size())));
}

// True if one of the tags matches the condition; for a negated condition, if none does.
bool has_tag(Condition condition, const std::vector<std::string>& tags) {
  const bool wanted = condition.op == Condition::Op::equal;
  condition.op = Condition::Op::equal;
  const bool found = tags.empty()
                         ? results::holds(condition, results::Value())
                         : std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
                             return results::holds(condition, tag);
                           });
  return found == wanted;
}

}  // namespace

bool is_score_field(const std::string& field) {
  return field == "split" || field == "step" || field == "name";
}

std::string to_text(const results::Value& value) {
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return results::exact_text(value, "—");
  // With 14 digits 0.07 * 100 prints as 7, and decimals print as users write them.
  return fmt::format("{:.14g}", *real == 0 ? 0.0 : *real);
}

const results::Value& field_of(const Trial& trial, const std::string& field) {
  static const results::Value null;
  for (const Fields* fields : {trial.common.get(), &trial.fields}) {
    if (fields == nullptr) continue;
    if (const auto found = fields->find(field); found != fields->end()) return found->second;
  }
  return null;
}

bool matches(const Selection& selection, const Trial& trial) {
  for (const Condition& condition : selection.conditions) {
    if (is_score_field(condition.word.name)) continue;
    if (condition.word.scope == results::WordScope::tag) {
      if (!has_tag(condition, trial.tags)) return false;
    } else if (condition.word.name == "task") {
      const auto selected = [&](const std::string& task) {
        return results::holds(condition, task);
      };
      if (std::none_of(trial.tasks.begin(), trial.tasks.end(), selected) &&
          std::none_of(trial.other_tasks.begin(), trial.other_tasks.end(), selected)) {
        return false;
      }
    } else if (!results::holds(condition, field_of(trial, condition.word.name))) {
      return false;
    }
  }
  return true;
}

bool matches(const Selection& selection, const Series& series) {
  return std::all_of(selection.conditions.begin(), selection.conditions.end(),
                     [&](const Condition& condition) {
                       const std::string* word = condition.word.name == "split"  ? &series.split
                                                 : condition.word.name == "name" ? &series.name
                                                 : condition.word.name == "task" ? &series.task
                                                                                 : nullptr;
                       return word == nullptr || results::holds(condition, *word);
                     });
}

bool selects_task(const Selection& selection, const std::string& task) {
  return std::all_of(selection.conditions.begin(), selection.conditions.end(),
                     [&](const Condition& condition) {
                       return condition.word.name != "task" || results::holds(condition, task);
                     });
}

bool selects(const Selection& selection, const std::string& task, const std::string& split) {
  return std::all_of(selection.conditions.begin(), selection.conditions.end(),
                     [&](const Condition& condition) {
                       return (condition.word.name != "task" || results::holds(condition, task)) &&
                              (condition.word.name != "split" || results::holds(condition, split));
                     });
}

bool matches(const Selection& selection, const Score& score) {
  return matches(selection, *score.series) &&
         std::all_of(selection.conditions.begin(), selection.conditions.end(),
                     [&](const Condition& condition) {
                       return condition.word.name != "step" ||
                              results::holds(condition, score.step);
                     });
}

const Condition* step_condition(const std::vector<const Selection*>& selections) {
  for (const Selection* selection : selections) {
    for (const Condition& condition : selection->conditions) {
      if (condition.word.name == "step") return &condition;
    }
  }
  return nullptr;
}

std::vector<std::int64_t> steps_of(const Condition& condition) {
  std::vector<std::int64_t> steps;
  for (const results::Value& value : condition.values) {
    if (const auto* step = std::get_if<std::int64_t>(&value)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::string filled(const std::string& text, const Trial& trial) {
  std::string result;
  take_apart(
      text, [&](const std::string& plain) { result += plain; },
      [&](const std::string& inside) {
        const Placeholder part = placeholder_from(inside);
        const results::Value& value = field_of(trial, part.field);
        const auto number = number_in(value);
        if (part.otherwise && value.index() == 0) {
          result += *part.otherwise;
        } else if (part.factor && number) {
          result += to_text(*number * *part.factor);
        } else {
          result += to_text(value);
        }
      });
  return result;
}

std::vector<std::string> fields_in(const std::string& text) {
  std::vector<std::string> fields;
  take_apart(
      text, [](const std::string&) {},
      [&](const std::string& inside) { fields.push_back(placeholder_from(inside).field); });
  return fields;
}

std::string renamed(const std::string& text,
                    const std::function<std::string(const std::string&)>& name) {
  std::string result;
  take_apart(
      text, [&](const std::string& plain) { result += plain; },
      [&](const std::string& inside) {
        const std::string field = placeholder_from(inside).field;
        result += "{" + name(field) + inside.substr(field.size()) + "}";
      });
  return result;
}

}  // namespace petlab::reports
