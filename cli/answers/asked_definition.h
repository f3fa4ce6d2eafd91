#pragma once

#include <string>
#include <vector>

#include "reports/definition.h"
#include "results/scores.h"

namespace CLI {
class App;
}  // namespace CLI

namespace petlab::cli {

/// --show-question: print the question as the definition of a report instead of its answer.
void add_show_question_option(CLI::App& app, bool& show_question);

/// The definition of a report with these sections about the trials that `where` selects: of their
/// sweeps, and of these metrics (empty: all) of one split.
reports::Definition asked_definition(const std::string& name, const results::ScoreReader& reader,
                                     const std::vector<results::Condition>& where,
                                     const std::vector<std::string>& metrics,
                                     const std::string& split,
                                     std::vector<reports::SectionSpec> sections);

}  // namespace petlab::cli
