#pragma once

#include <span>
#include <string>
#include <vector>

#include "sweeps/backbone.h"
#include "sweeps/fields.h"
#include "sweeps/task.h"

namespace petlab::sweeps {

/// Something wrong with a configuration, in parts.
struct FieldProblem {
  std::string field;
  std::string found;
  std::string wanted;
};

/// What validate() finds, in parts.
std::vector<FieldProblem> field_problems(const TrialConfig& config,
                                         std::span<const TaskDeclaration> declared);

/// What the configuration asks of its backbone that one of this shape cannot do: texts or decoding
/// of an encoder, a head of a T5. Tasks that are not known are left to field_problems.
std::vector<FieldProblem> backbone_problems(const TrialConfig& config,
                                            std::span<const TaskDeclaration> declared,
                                            const BackboneShape& shape);

}  // namespace petlab::sweeps
