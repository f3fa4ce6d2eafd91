#include "tests/fuzz/sweeps_inputs.h"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "base/file_problems.h"
#include "protocol/attempt_log.h"
#include "protocol/decisions.h"
#include "protocol/events.h"
#include "protocol/remarks.h"
#include "protocol/trial_directory.h"
#include "sweeps/condition_text.h"
#include "sweeps/error.h"
#include "sweeps/sweep_file.h"
#include "sweeps/sweep_reader.h"
#include "tests/sweeps/fixture.h"

namespace petlab::fuzz {
namespace {

using namespace petlab::protocol;
using namespace petlab::sweeps;

void require(bool holds, const char* property) {
  if (!holds) throw std::logic_error(std::string("a property does not hold: ") + property);
}

void require_located(const base::FileProblemsError& error, const std::string& file) {
  require(!error.problems().empty(), "a refused file has problems");
  for (const std::string& problem : error.problems()) {
    const bool is_own_file = problem.rfind(file + ":", 0) == 0;
    require(is_own_file || problem.find(".y") != std::string::npos, "a problem names its file");
  }
}

}  // namespace

void event_line(std::string_view input) {
  Event event;
  try {
    event = parse_event(input);
  } catch (const std::runtime_error&) {
    return;
  }
  try {
    require(nlohmann::json::parse(input).is_object(), "what is parsed is an object");
  } catch (const nlohmann::json::parse_error&) {
    require(false, "what is parsed is JSON");
  } catch (const nlohmann::json::out_of_range&) {
    // A huge number under an unknown key is still JSON.
  }
  require(parse_event(to_line(event)) == event, "what is written reads back");
}

void sweep_file(std::string_view input) {
  static const sweeps::testing::Home home;
  const std::filesystem::path file = home.folder().path() / "sweep.yaml";
  try {
    const Sweep sweep = read_sweep_text(input, file, home.locations(), 2000);
    require(!sweep.trials.empty(), "an accepted sweep has trials");
    for (const SweepTrial& trial : sweep.trials) {
      std::vector<TaskDeclaration> declared;
      for (const auto& [name, task] : sweep.tasks) declared.push_back(task);
      require(validate(trial.config, declared).empty(), "an accepted trial is valid");
      const nlohmann::json json = to_json(trial.config);
      require(nlohmann::json(to_json(trial_config_from_json(json))) == json,
              "an accepted trial survives JSON");
    }
  } catch (const base::FileProblemsError& error) {
    require_located(error, file.string());
  }
}

void task_file(std::string_view input) {
  const std::string file = "/folder/task.yaml";
  try {
    const TaskDeclaration task = read_task_text(input, file);
    require(task_from_json(nlohmann::json(to_json(task))) == task, "a task survives JSON");
    require(task_digest(task).size() == 71, "a task has a digest");
  } catch (const base::FileProblemsError& error) {
    require_located(error, file);
  }
}

void trial_file(std::string_view input) {
  static const petlab::testing::TempDir folder;
  const std::filesystem::path file = folder.write("trial.json", input);
  TrialFile content;
  try {
    content = read_trial_file(file);
  } catch (const Error&) {
    return;
  }
  write_trial_file(file, content);
  const TrialFile again = read_trial_file(file);
  require(to_json(again.config) == to_json(content.config), "a configuration reads back");
  require(again.tasks == content.tasks && again.resume == content.resume, "a trial reads back");
}

void record_files(std::string_view input) {
  static const petlab::testing::TempDir folder;
  const std::string trial = "0123456789abcdef";
  const TrialDirectory attempt(folder.path(), trial, 1);
  std::filesystem::create_directories(attempt.folder());
  const auto located = [](const std::vector<std::string>& left_out,
                          const std::filesystem::path& file) {
    for (const std::string& line : left_out) {
      require(line.rfind(file.string() + ":", 0) == 0, "a line left out names its file");
    }
  };
  const std::filesystem::path log = folder.write(trial + "/1/attempt.jsonl", input);
  located(read_attempt_log(attempt).left_out, log);

  std::vector<std::string> left_out;
  const std::filesystem::path decisions = folder.write(trial + "/decisions.jsonl", input);
  const std::vector<Decision> read = read_decisions(folder.path(), trial, &left_out);
  located(left_out, decisions);
  const std::string another = "fedcba9876543210";
  folder.write(another + "/decisions.jsonl", "");
  for (const Decision& decision : read) append_decision(folder.path(), another, decision);
  require(read_decisions(folder.path(), another) == read, "decisions read back");

  left_out.clear();
  const std::filesystem::path remarks = folder.write(trial + "/remarks.jsonl", input);
  const std::vector<Remark> remarked = read_remarks(remarks, &left_out);
  located(left_out, remarks);
  const std::filesystem::path copy = folder.write(another + "/remarks.jsonl", "");
  append_remarks(copy, remarked);
  require(read_remarks(copy) == remarked, "remarks read back");
}

void condition_text(std::string_view input) {
  constexpr FieldType kTypes[] = {FieldType::text, FieldType::integer, FieldType::number,
                                  FieldType::boolean};
  try {
    for (const WrittenCondition& condition : parse_conditions(input, "--where")) {
      require(!condition.word.empty() && !condition.values.empty(), "a condition has a value");
      for (const FieldType type : kTypes) {
        try {
          require(!typed_values(condition, type).empty(), "a condition has a typed value");
        } catch (const std::invalid_argument&) {
        }
      }
    }
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace petlab::fuzz
