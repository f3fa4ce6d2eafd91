#include "cli/decisions/note.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

#include "cli/decisions/remark_subjects.h"
#include "cli/options/json_option.h"
#include "cli/options/open_to_write.h"
#include "cli/output/remark_lines.h"
#include "orchestrator/host/wall_clock.h"
#include "orchestrator/records/remark.h"

namespace petlab::cli {
namespace {

using protocol::Remark;
using results::RemarkSubject;

struct NoteArguments : RemarkArguments {
  std::string trial;  // the text if a sweep was named
  std::string text;
  bool json = false;
};

int print_notes_of(const NoteArguments& arguments, const results::Reader& reader,
                   const RemarkSubject& subject, std::ostream& out) {
  std::vector<Remark> notes = results::remarks_of(reader, subject).all;
  std::erase_if(notes, [](const Remark& one) { return one.what != Remark::What::note; });
  if (!arguments.json) {
    print_remarks(out, notes, "");
    return kDone;
  }
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const Remark& one : notes) document.push_back({{"time", one.time}, {"note", one.text}});
  out << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return kDone;
}

int note(const NoteArguments& arguments, Streams streams) {
  if (arguments.trial.empty() && arguments.sweeps.empty()) {
    throw std::invalid_argument("found neither a trial nor --sweep, expected one of them");
  }
  if (arguments.sweeps.size() > 1 || (!arguments.sweeps.empty() && !arguments.text.empty())) {
    throw std::invalid_argument("found several trials or sweeps, expected one");
  }
  std::vector<std::string> trials;
  if (arguments.sweeps.empty()) trials.push_back(arguments.trial);
  std::string text = arguments.sweeps.empty() ? arguments.text : arguments.trial;
  const std::filesystem::path database = arguments.database_path();
  RemarkSubject subject;
  {
    const results::Reader reader(database);
    subject = remark_subjects(reader, arguments, trials).front();
    if (text.empty()) return print_notes_of(arguments, reader, subject, streams.out);
  }
  if (text == "-") {
    text.assign(std::istreambuf_iterator<char>(streams.in), {});
    while (text.ends_with('\n')) text.pop_back();
  }
  const std::filesystem::path runs = arguments.existing_runs_path();
  OpenToDecide opened(database);
  const orchestrator::DecisionWriter to = opened.writer();
  orchestrator::remark(to, runs, subject,
                       {{Remark::What::note, text, orchestrator::wall_clock_seconds()}});
  if (!opened.delay().empty()) {
    streams.err << "petlab: " << opened.delay() << "\n";
    return kDone;
  }
  return print_notes_of(arguments, to.read(), subject, streams.out);
}

}  // namespace

std::function<int()> make_note(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<NoteArguments>();
  app.add_option("TRIAL", arguments->trial, "a trial id or a prefix of it; not with --sweep");
  app.add_option("TEXT", arguments->text,
                 "the note, - for standard input; without it, print the notes");
  add_remark_arguments(app, *arguments, streams);
  add_json_option(app, arguments->json, "print JSON");
  return [arguments, streams] { return note(*arguments, streams); };
}

}  // namespace petlab::cli
