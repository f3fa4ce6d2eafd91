#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "reports/dataset.h"

namespace petlab::reports {

/// Looks up a backbone's number of parameters; std::nullopt if unknown.
using BackboneParameters = std::function<std::optional<std::int64_t>(const std::string& backbone)>;

/// `bls_percent`: a trial's storage in percent of its backbone's, per task. 100 / tasks if the
/// whole backbone is trained, 0 if only the head is. std::nullopt if the storage or the backbone's
/// size is unknown.
std::optional<double> bls_percent(const Trial& trial, const BackboneParameters& parameters);

/// `ft_params_percent`: the number of trained values (modules and scores, without the head) in
/// percent of the backbone's, per task. Only for the paper's backbones, whose shapes are known
/// without their files; std::nullopt for others.
std::optional<double> ft_params_percent(const Trial& trial);

/// `bls_formula`: the formula of the trial's storage (metrics/storage.h); std::nullopt if there is
/// none.
std::optional<std::string> bls_formula(const Trial& trial);

/// `examples`: the number of examples a trial was trained or scored on. It depends on the task and
/// split that a cell selects, so it is a value of cells and not a field of trials.
inline constexpr char kExamples[] = "examples";

/// True for the first three of these fields.
bool is_derived(const std::string& field);

}  // namespace petlab::reports
