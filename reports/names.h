#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/dataset.h"
#include "reports/definition.h"
#include "reports/published.h"

namespace petlab::reports {

/// The result of check_names().
struct CheckedNames {
  /// Messages `FILE:LINE: …` with the nearest known word for everything that the data and the
  /// published numbers lack: words missing in Dataset::known_words; other words that no trial has
  /// but that resemble a present one that the definition does not select (a misspelt variant);
  /// tables, rows and columns of the published numbers.
  std::vector<std::string> problems;
  /// Notes for the reader of the report about words that no trial has but that may be intended.
  std::vector<std::string> notes;
};

/// The fields that conditions, lines, cells and texts of the definition use.
std::set<std::string> fields_of(const Definition& definition);

/// True if a selection of the definition contains that word for a field.
bool selects(const Definition& definition, const std::string& field, const std::string& word);

CheckedNames check_names(const Definition& definition, const Dataset& data,
                         const Published& published);

}  // namespace petlab::reports
