#include "cli/answers/asked_definition.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "questions/conditions.h"

namespace petlab::cli {

void add_show_question_option(CLI::App& app, bool& show_question) {
  app.add_flag("--show-question", show_question,
               "print the question as YAML that petlab report takes, not the answer");
}

reports::Definition asked_definition(const std::string& name, const results::ScoreReader& reader,
                                     const std::vector<results::Condition>& where,
                                     const std::vector<std::string>& metrics,
                                     const std::string& split,
                                     std::vector<reports::SectionSpec> sections) {
  reports::Definition made;
  made.name = name;
  made.about = "a question to petlab " + name;
  made.where.conditions = where;
  made.where.conditions.push_back(questions::one_of("split", {split}));
  if (!metrics.empty()) {
    made.where.conditions.push_back(questions::one_of("name", {metrics.begin(), metrics.end()}));
  }
  results::ScoreQuestion question;
  question.fields = {results::word_named("sweep")};
  question.where = where;
  question.configurations = false;
  reader.each(question, [&](const results::ScoredTrial& trial) {
    const auto* sweep = std::get_if<std::string>(&trial.fields[0]);
    if (sweep == nullptr || std::count(made.sweeps.begin(), made.sweeps.end(), *sweep) > 0) return;
    made.sweeps.push_back(*sweep);
  });
  made.sections = std::move(sections);
  return made;
}

}  // namespace petlab::cli
