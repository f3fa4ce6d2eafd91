#include "orchestrator/records/inbox.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/shallow_json.h"
#include "orchestrator/host/error.h"
#include "orchestrator/records/decide.h"
#include "orchestrator/records/remark.h"
#include "protocol/decisions.h"
#include "protocol/remarks.h"

namespace petlab::orchestrator {
namespace {

constexpr std::uintmax_t kLargestPost = std::uintmax_t{1} << 30;

std::filesystem::path inbox_folder(const std::filesystem::path& runs) { return runs / ".inbox"; }

void store_lines_of(results::Batch& batch, const std::filesystem::path& runs,
                    const results::RemarkSubject& subject) {
  if (!subject.trial_id.empty()) {
    store_decisions(batch, subject.trial_id, protocol::read_decisions(runs, subject.trial_id));
  }
  for (const auto& one : protocol::read_remarks(remarks_file_of(runs, subject))) {
    results::record_remark(batch, subject, one);
  }
}

}  // namespace

std::filesystem::path post_to_inbox(const std::filesystem::path& runs,
                                    const std::vector<results::RemarkSubject>& subjects) {
  const std::filesystem::path folder = inbox_folder(runs);
  std::error_code error;
  const bool created = std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  }
  if (created) base::sync_folder(runs);
  std::string lines;
  for (const results::RemarkSubject& subject : subjects) {
    const nlohmann::json line = {{"trial", subject.trial_id}, {"sweep", subject.sweep}};
    lines += line.dump() + "\n";
  }
  // A unique name, so that a run only removes posts that it has read.
  const std::filesystem::path file =
      folder / fmt::format("{}-{:08x}.json", getpid(), std::random_device{}());
  base::write_file_atomically(file, lines);
  return file;
}

bool read_inbox(results::Store& store, const std::filesystem::path& runs) {
  std::vector<std::filesystem::path> read;
  for (const std::filesystem::path& file : base::entries_of(inbox_folder(runs))) {
    if (file.extension() != ".json") {
      // Still being written, or its writer was killed: no other one has that name.
      base::remove_abandoned_writes(file.parent_path() / file.stem());
      continue;
    }
    std::istringstream lines(base::read_file_if_any(file, kLargestPost).value_or(""));
    read.push_back(file);
    std::vector<results::RemarkSubject> subjects;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json post = base::shallow_json_or_none(line);
      if (!post.is_object()) continue;
      const results::RemarkSubject subject{post.value("trial", ""), post.value("sweep", "")};
      const bool known = subject.trial_id.empty()
                             ? store.read().sweep(subject.sweep).has_value()
                             : store.read().trial(subject.trial_id).has_value();
      if (known) subjects.push_back(subject);
    }
    results::Batch batch = store.begin();
    for (const results::RemarkSubject& subject : subjects) store_lines_of(batch, runs, subject);
    batch.commit();
  }
  for (const std::filesystem::path& file : read) {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
  return !read.empty();
}

}  // namespace petlab::orchestrator
