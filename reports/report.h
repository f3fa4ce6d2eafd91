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
#include "reports/table.h"
#include "reports/trial_record.h"

namespace petlab::reports {

/// How far a sweep is.
struct SweepProgress {
  std::string sweep;
  std::int64_t trials = 0;
  std::vector<std::pair<std::string, std::int64_t>> states;  // with their counts, by name
};

/// A part of a finished report.
using Section = std::variant<Table, Figure>;

/// A finished report, ready to be rendered.
struct Report {
  std::string name;
  std::string about;
  std::vector<SweepProgress> progress;
  std::vector<Section> sections;
  std::vector<std::string> notes;  // of the definition, then what a reader must know of the data
  std::vector<std::string> builds =
      {};  // where the numbers come from (builds_of()); on pages alone
  std::vector<TrialRecord> trials = {};  // of its cells (trial_records()); on pages alone
};

/// Computes the report. Throws base::FileProblemsError for the problems of check_names(), and where
/// a cell selects several values of one trial or takes values of several tasks, metrics or splits
/// for those of seeds. Words that no trial has and that may be meant are noted below it. The order
/// of `data.scores` changes nothing, to the bit.
Report make_report(const Definition& definition, const Dataset& data, const Published& published);

/// Several reports as the sections of one, each section with its report's name before its key, its
/// title and its notes.
Report joined_reports(const std::string& name, const std::string& about,
                      std::vector<Report> reports);

}  // namespace petlab::reports
