#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/figure.h"
#include "reports/published.h"
#include "reports/ranks.h"
#include "reports/table.h"
#include "reports/trial_record.h"

namespace petlab::reports {

/// The progress of a sweep.
struct SweepProgress {
  std::string sweep;
  std::int64_t trials = 0;
  std::vector<std::pair<std::string, std::int64_t>> states;  // counts by state
};

/// A part of a finished report.
using Section = std::variant<Table, Figure, Ranks>;

/// True for a section with a picture: anything but a table.
inline bool is_drawn(const Section& section) { return !std::holds_alternative<Table>(section); }

/// A finished report, ready to be rendered.
struct Report {
  std::string name;
  std::string about;
  std::vector<SweepProgress> progress;
  std::vector<Section> sections;
  std::vector<std::string> notes;        // notes of the definition, then those about the data
  std::vector<std::string> builds = {};  // provenance of the numbers (builds_of()); only for pages
  std::vector<TrialRecord> trials = {};  // trials of its cells (trial_records()); only for pages
};

/// Computes the report. Throws base::FileProblemsError for the problems of check_names(), and if a
/// cell selects several values of one trial, or pools values of several tasks, metrics or splits as
/// if they were seeds. Words that no trial has but that may be intended become notes. The order of
/// `data.scores` does not affect any bit of the result.
Report make_report(const Definition& definition, const Dataset& data, const Published& published);

/// Joins reports as sections of one report. Each section's key, title and notes are prefixed with
/// its report's name.
Report joined_reports(const std::string& name, const std::string& about,
                      std::vector<Report> reports);

}  // namespace petlab::reports
