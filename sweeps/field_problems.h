#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/backbone.h"
#include "sweeps/fields.h"
#include "sweeps/task.h"

namespace petlab::sweeps {

/// A problem of a configuration, in parts.
struct FieldProblem {
  std::string field;
  std::string found;
  std::string wanted;
};

/// The problem of a kind of module that the catalog (empty: the built-in one) lacks.
FieldProblem kind_problem(const std::string& kind, std::string_view catalog);

/// The problems that validate() reports, in parts.
std::vector<FieldProblem> field_problems(const TrialConfig& config,
                                         std::span<const TaskDeclaration> declared);

/// The requirements of the configuration that a backbone of this shape cannot meet: texts or
/// decoding with an encoder, a head on a T5. Unknown tasks are left to field_problems().
std::vector<FieldProblem> backbone_problems(const TrialConfig& config,
                                            std::span<const TaskDeclaration> declared,
                                            const BackboneShape& shape);

}  // namespace petlab::sweeps
