#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/published.h"

namespace petlab::reports {

/// What check_names() found.
struct CheckedNames {
  /// Everything in the definition that the data and the published numbers do not have, as
  /// `FILE:LINE: …` with the nearest known word: words that Dataset::known_words lacks; other words
  /// that no trial has and that resemble one which it has and the definition does not select (a
  /// misspelt variant); tables, rows and columns of the published numbers.
  std::vector<std::string> problems;
  /// Words that no trial has and that may be meant, for a reader of the report.
  std::vector<std::string> notes;
};

/// The fields that conditions, lines, cells and texts of the definition use.
std::set<std::string> fields_of(const Definition& definition);

/// Whether a selection of the definition names that word of a field.
bool selects(const Definition& definition, const std::string& field, const std::string& word);

CheckedNames check_names(const Definition& definition, const Dataset& data,
                         const Published& published);

}  // namespace petlab::reports
