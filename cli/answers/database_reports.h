#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/curve.h"
#include "reports/definition.h"
#include "reports/report.h"
#include "reports/trial_record.h"
#include "results/is_alive.h"

namespace petlab::cli {

/// Names of what is made without a definition; no shipped report has them.
inline constexpr char kAllReports[] = "all";
inline constexpr char kCurveReport[] = "curve";

/// Whether a report is wanted with the trials of its cells, which only pages have: telling them
/// takes longer than a table.
enum class For { text, page };

/// Which open attempts may still be at work, as `petlab status` decides, at the moment of the first
/// question about each orchestrator.
results::IsAlive living_now(const std::filesystem::path& database);

/// The definition that the user names: that of a shipped report, or a file's (a name with a slash,
/// or ending in .yaml). Throws std::invalid_argument where there is none, and
/// base::FileProblemsError.
reports::Definition definition_named(const std::string& report);

/// The report about the definition's sweeps, or about those that `sweeps` names (--sweep). Throws
/// as reports::choose_sweeps() and reports::make_report().
reports::Report report_on(reports::Definition definition, const std::vector<std::string>& sweeps,
                          const std::filesystem::path& database, For what);

/// The figure that is asked for without a definition (petlab report curve). Throws
/// std::invalid_argument where its conditions select no trial.
reports::Report curve_on(const reports::CurveRequest& request,
                         const std::vector<std::string>& sweeps,
                         const std::filesystem::path& database, For what);

/// The same figure as a definition.
reports::Definition curve_question(const reports::CurveRequest& request,
                                   const std::vector<std::string>& sweeps,
                                   const std::filesystem::path& database);

/// Every shipped report that this database or the paper has something of, on one page.
reports::Report all_reports_on(const std::filesystem::path& database, For what);

/// Adds their curves from the database, and ends of their logs from its runs folder where that is
/// at hand.
void complete_trials(std::vector<reports::TrialRecord>& trials,
                     const std::filesystem::path& database);

/// A page of what the database itself has something of: of each sweep that no shipped report is
/// about a table of its variants, then the shipped reports that are about one of its sweeps.
reports::Report own_reports_on(const std::filesystem::path& database);

/// A page of those that are named, in that order.
reports::Report named_reports_on(const std::vector<std::string>& names,
                                 const std::filesystem::path& database);

}  // namespace petlab::cli
