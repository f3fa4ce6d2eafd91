#include "cli/decisions/tag.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "cli/decisions/remark_subjects.h"
#include "cli/options/json_option.h"
#include "cli/options/open_to_write.h"
#include "cli/output/answer_output.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/records/remark.h"

namespace petlab::cli {
namespace {

using protocol::Remark;
using results::RemarkSubject;

struct TagArguments : RemarkArguments {
  std::vector<std::string> words;  // trial ids and tags such as `+good`
  std::vector<std::string> add;
  std::vector<std::string> remove;
  bool json = false;
};

/// The parsed words.
struct TagRequest {
  std::vector<std::string> trials;
  std::vector<Remark> changes;
};

TagRequest read_request(const TagArguments& arguments, double time) {
  TagRequest request;
  std::vector<std::string> add = arguments.add;
  for (const std::string& word : arguments.words) {
    if (word.starts_with('+')) {
      add.push_back(word.substr(1));
    } else {
      request.trials.push_back(word);
    }
  }
  for (const std::string& tag : add) {
    request.changes.push_back({Remark::What::tag, tag, time});
    if (std::find(arguments.remove.begin(), arguments.remove.end(), tag) !=
        arguments.remove.end()) {
      throw std::invalid_argument(fmt::format("found +{0} and -{0}, expected one of them", tag));
    }
  }
  for (const std::string& tag : arguments.remove) {
    request.changes.push_back({Remark::What::untag, tag, time});
  }
  for (const Remark& one : request.changes) {
    if (const std::string why = protocol::why_no_remark(one); !why.empty()) {
      throw std::invalid_argument(why);
    }
  }
  return request;
}

// The requested changes that have an effect: adding an existing tag or removing a missing one is
// not recorded. The latest remark about a tag counts, so a change gets a time after all earlier
// remarks, whose clock may have been ahead.
std::vector<Remark> real_changes(const std::vector<Remark>& wanted, const results::Remarks& known) {
  std::vector<Remark> changes;
  for (Remark one : wanted) {
    const bool exists =
        std::find(known.tags.begin(), known.tags.end(), one.text) != known.tags.end();
    if (exists == (one.what == Remark::What::tag)) continue;
    for (const Remark& before : known.all) {
      if (before.what == Remark::What::note || before.text != one.text) continue;
      one.time = std::max(one.time, std::nextafter(before.time, HUGE_VAL));
    }
    changes.push_back(std::move(one));
  }
  return changes;
}

void print_all_tags(const TagArguments& arguments, const results::Reader& reader,
                    std::ostream& out) {
  const auto tags = results::all_tags(reader);
  if (arguments.json) {
    nlohmann::ordered_json document = nlohmann::ordered_json::array();
    for (const auto& [tag, trials] : tags) document.push_back({{"tag", tag}, {"trials", trials}});
    out << document.dump(1) << "\n";
    return;
  }
  std::vector<std::vector<results::Value>> rows;
  for (const auto& [tag, trials] : tags) rows.push_back({tag, trials});
  AnswerOutput().print(out, {"tag", "trials"}, rows);
}

void print_tags(const TagArguments& arguments, const results::Reader& reader,
                const std::vector<RemarkSubject>& subjects, std::ostream& out) {
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const RemarkSubject& subject : subjects) {
    const std::vector<std::string> tags = results::remarks_of(reader, subject).tags;
    if (arguments.json) {
      document.push_back({{subject.trial_id.empty() ? "sweep" : "trial",
                           subject.trial_id.empty() ? subject.sweep : subject.trial_id},
                          {"tags", tags}});
    } else {
      out << subject_text(subject) << "  "
          << (tags.empty() ? "no tags" : fmt::format("{}", fmt::join(tags, ", "))) << "\n";
    }
  }
  if (arguments.json) {
    out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
}

int tag(const TagArguments& arguments, Streams streams) {
  const std::filesystem::path database = arguments.database_path();
  const TagRequest request = read_request(arguments, orchestrator::wall_clock_seconds());
  std::vector<RemarkSubject> subjects;
  {
    const results::Reader reader(database);
    subjects = remark_subjects(reader, arguments, request.trials);
    if (subjects.empty() && request.changes.empty()) {
      print_all_tags(arguments, reader, streams.out);
      return kDone;
    }
    if (subjects.empty()) {
      throw std::invalid_argument("found neither a trial nor --sweep, expected at least one");
    }
    if (request.changes.empty()) {
      print_tags(arguments, reader, subjects, streams.out);
      return kDone;
    }
  }
  const std::filesystem::path runs = arguments.existing_runs_path();
  OpenToDecide opened(database);
  const orchestrator::DecisionWriter to = opened.writer();
  for (const RemarkSubject& subject : subjects) {
    const std::vector<Remark> changes =
        real_changes(request.changes, results::remarks_of(to.read(), subject));
    if (!changes.empty()) orchestrator::remark(to, runs, subject, changes);
  }
  if (!opened.delay().empty()) {
    streams.err << "petlab: " << opened.delay() << "\n";
    return kDone;
  }
  print_tags(arguments, to.read(), subjects, streams.out);
  return kDone;
}

}  // namespace

std::vector<std::string> tag_words(std::vector<std::string> words) {
  bool value_of_option = false;
  for (std::size_t at = 1; at < words.size(); ++at) {
    std::string& word = words[at];
    const bool is_value = std::exchange(value_of_option, false);
    if (is_value) continue;
    if (word == "--db" || word == "--runs" || word == "--sweep" || word == "--add" ||
        word == "--remove") {
      value_of_option = true;
    } else if (word.size() > 1 && word[0] == '-' && word[1] != '-' && word != "-h") {
      word = "--remove=" + word.substr(1);
    }
  }
  return words;
}

std::function<int()> make_tag(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<TagArguments>();
  app.add_option("TRIAL", arguments->words,
                 "trial ids, then +TAG to add a tag or -TAG to remove one; without tags, print the "
                 "trials' tags; without trials, print all tags");
  app.add_option("--add", arguments->add, "as +TAG")->type_size(1)->allow_extra_args(false);
  app.add_option("--remove", arguments->remove, "as -TAG")->type_size(1)->allow_extra_args(false);
  add_remark_arguments(app, *arguments, streams);
  add_json_option(app, arguments->json, "print JSON");
  return [arguments, streams] { return tag(*arguments, streams); };
}

}  // namespace petlab::cli
