#include "reports/wanted.h"

#include <algorithm>

#include "reports/derived.h"
#include "reports/names.h"
#include "reports/selection.h"

namespace petlab::reports {
namespace {

// Scores of tasks that no trial lists are only known after reading.
bool may_show(const Selection& where, const Trial& trial) {
  return matches(where, trial) ||
         std::any_of(where.conditions.begin(), where.conditions.end(),
                     [](const Condition& condition) { return condition.word.name == "task"; });
}

}  // namespace

Wanted wanted_by(std::span<const Definition> definitions) {
  const auto any = [definitions](const auto& holds) {
    return std::any_of(definitions.begin(), definitions.end(), holds);
  };
  Wanted wanted;
  for (const Definition& one : definitions) wanted.fields.merge(fields_of(one));
  wanted.every_step = wanted.fields.contains("step");
  wanted.examples = wanted.fields.contains(kExamples);
  wanted.series = [any](const Series& series) {
    return any([&](const Definition& one) { return matches(one.where, series); });
  };
  wanted.trial = [any](const Trial& trial) {
    return any([&](const Definition& one) { return may_show(one.where, trial); });
  };
  return wanted;
}

Wanted wanted_by(const Selection& where, bool every_step) {
  Wanted wanted;
  for (const Condition& condition : where.conditions) wanted.fields.insert(condition.word.name);
  wanted.series = [&where](const Series& series) { return matches(where, series); };
  wanted.trial = [&where](const Trial& trial) { return may_show(where, trial); };
  wanted.every_step = every_step;
  return wanted;
}

}  // namespace petlab::reports
