#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "reports/dataset.h"

namespace petlab::reports {

/// The parameters of a backbone; std::nullopt where nobody knows them.
using BackboneParameters = std::function<std::optional<std::int64_t>(const std::string& backbone)>;

/// `bls_percent`: a trial's storage in percent of its backbone's, per task. 100 / tasks where the
/// whole backbone is trained, 0 where only the head is; std::nullopt where the storage or the
/// backbone's size is not known.
std::optional<double> bls_percent(const Trial& trial, const BackboneParameters& parameters);

/// `ft_params_percent`: the numbers that training changes (modules and scores, the head left out)
/// in percent of the backbone's, per task. Of the paper's backbones only, whose shapes are known
/// without their files; std::nullopt for others.
std::optional<double> ft_params_percent(const Trial& trial);

/// `bls_formula`: the formula of the trial's storage (metrics/storage.h); std::nullopt where there
/// is none.
std::optional<std::string> bls_formula(const Trial& trial);

/// `examples`: on how many a trial was trained or scored. It belongs to a task and a split, which
/// the cell selects, and is a value of a cell alone: no field of the trial.
inline constexpr char kExamples[] = "examples";

/// Whether a field is one of the first three.
bool is_derived(const std::string& field);

}  // namespace petlab::reports
