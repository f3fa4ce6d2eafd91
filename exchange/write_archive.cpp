#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/sha256.h"
#include "exchange/archive.h"
#include "exchange/archive_format.h"
#include "orchestrator/records/sweep_record.h"
#include "orchestrator/recovery/evidence.h"
#include "results/contents.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;
using orchestrator::read_sweep_file;
using orchestrator::where_it_runs;

/// A new file that gets its final name once complete.
class PendingArchive {
 public:
  explicit PendingArchive(fs::path file) : file_(std::move(file)) {
    base::remove_abandoned_writes(file_);
    name_ = file_.string() + ".XXXXXX";
    out_ = base::FileDescriptor(::mkostemp(name_.data(), O_CLOEXEC));
    if (!out_) refuse(errno);
    // While this lock is held, no process removes the file as abandoned. Without file locks, no
    // process can.
    while (::flock(out_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~PendingArchive() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  PendingArchive(const PendingArchive&) = delete;
  PendingArchive& operator=(const PendingArchive&) = delete;

  bool write(const char* data, std::size_t size) {
    hash_.add(data, size);
    size_ += size;
    if (base::write_all(out_.get(), {data, size})) return true;
    error_ = errno;
    return false;
  }
  void throw_if_failed() const {
    if (error_ != 0) refuse(error_);
  }
  void keep() {
    if (::fchmod(out_.get(), base::mode_of_new_files()) != 0 || ::fsync(out_.get()) != 0)
      refuse(errno);
    if (const int error = base::give_new_name(name_, file_); error != 0) refuse(error);
    name_.clear();
    base::sync_folder(base::folder_of(file_));
  }
  std::uintmax_t size() const { return size_; }
  std::string digest() { return hash_.finish(); }

 private:
  [[noreturn]] void refuse(int error) const {
    throw Error(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(error)));
  }
  fs::path file_;
  std::string name_;
  base::FileDescriptor out_;
  base::Sha256 hash_;
  std::uintmax_t size_ = 0;
  int error_ = 0;
};

la_ssize_t take_block(archive*, void* pending, const void* data, std::size_t size) {
  const bool written =
      static_cast<PendingArchive*>(pending)->write(static_cast<const char*>(data), size);
  return written ? static_cast<la_ssize_t>(size) : -1;
}

/// Writes entries that depend only on their names and contents.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(PendingArchive& pending)
      : pending_(pending), archive_(archive_write_new(), &archive_write_free) {
    if (!archive_) throw Error("libarchive cannot be initialised");
    check(archive_write_set_format_pax_restricted(archive_.get()));
    check(archive_write_add_filter_gzip(archive_.get()));
    check(archive_write_set_bytes_in_last_block(archive_.get(), 1));
    // Names are bytes regardless of the locale, and the archive contains no time of writing.
    check(archive_write_set_options(archive_.get(), "pax:hdrcharset=BINARY,gzip:!timestamp"));
    check(archive_write_open(archive_.get(), &pending, nullptr, &take_block, nullptr));
  }

  void begin(const std::string& name, std::uintmax_t size) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                              &archive_entry_free);
    archive_entry_copy_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_mtime(entry.get(), 0, 0);
    check(archive_write_header(archive_.get(), entry.get()));
  }
  void add(const char* data, std::size_t size) {
    while (size > 0) {
      const la_ssize_t wrote = archive_write_data(archive_.get(), data, size);
      if (wrote <= 0) check(wrote == 0 ? ARCHIVE_FATAL : static_cast<int>(wrote));
      data += wrote;
      size -= static_cast<std::size_t>(wrote);
    }
  }
  void end() { check(archive_write_close(archive_.get())); }

 private:
  void check(int result) const {
    if (result == ARCHIVE_OK) return;
    pending_.throw_if_failed();
    const char* const why = archive_error_string(archive_.get());
    throw Error(fmt::format("the archive cannot be written: {}", why == nullptr ? "" : why));
  }
  PendingArchive& pending_;
  std::unique_ptr<archive, decltype(&archive_write_free)> archive_;
};

/// The files of an archive, by their names in it.
class Collection {
 public:
  Collection(const results::Reader& reader, const fs::path& database, const fs::path& runs,
             const ArchiveOptions& options)
      : reader_(reader), contents_(database), runs_(runs), options_(options) {
    for (const auto& artifact : contents_.artifacts()) {
      if (artifact.path.empty()) continue;
      const bool wanted = options.artifacts == ArchivedArtifacts::all ||
                          (options.artifacts == ArchivedArtifacts::result && artifact.counts);
      if (!wanted) unwanted_[{artifact.trial_id, artifact.attempt}] = artifact.path;
    }
  }

  void collect() {
    const std::vector<std::string> all = reader_.sweep_names();
    std::set<std::string> trials;
    for (const std::string& name : options_.sweeps.empty() ? all : options_.sweeps) {
      if (std::find(all.begin(), all.end(), name) == all.end()) {
        throw std::invalid_argument(fmt::format("sweep {} does not exist; there {} {}", name,
                                                all.size() == 1 ? "is" : "are",
                                                fmt::join(all, ", ")));
      }
      add_sweep(name, trials);
    }
    if (options_.sweeps.empty()) {
      for (const std::string& id : contents_.trial_ids()) trials.insert(id);
    }
    for (const fs::path& file : base::entries_of(protocol::sweeps_folder(runs_))) {
      // The original texts of sweeps, the points of searches, and records of code. They are few,
      // and many attempts share them.
      const bool shared = file.extension() == ".yaml" || file.extension() == ".points" ||
                          file.extension() == ".code";
      if (shared && file.filename().string().front() != '.') add(file);
    }
    for (const std::string& id : trials) add_trial(id);
  }

  std::map<std::string, fs::path> files;
  std::map<std::string, std::vector<std::string>> left_out;
  Archived done;

 private:
  void add(const fs::path& file) {
    const std::string name = (fs::path("runs") / file.lexically_relative(runs_)).string();
    if (const std::string why = why_no_archive_name(name); !why.empty()) {
      throw SourceError(fmt::format("{}: {}", file.string(), why));
    }
    files[name] = file;
  }

  void add_if_there(const fs::path& file) {
    std::error_code error;
    // Files that cannot be examined are added, too. Reading them reports the error.
    if (fs::status(file, error).type() != fs::file_type::not_found) add(file);
  }

  void add_sweep(const std::string& name, std::set<std::string>& trials) {
    const fs::path file = protocol::sweep_file(runs_, name);
    for (const results::TrialRow& trial : read_sweep_file(file).trials) {
      trials.insert(trial.trial_id);
    }
    add(file);
    add_if_there(protocol::sweep_remarks_file(runs_, name));
    ++done.sweeps;
  }

  void add_trial(const std::string& id) {
    const results::TrialFacts facts = reader_.trial_facts(std::vector<std::string>{id}).front();
    add_if_there(protocol::decisions_file(runs_, id));
    add_if_there(protocol::remarks_file(runs_, id));
    std::error_code error;
    bool any = false;
    for (const results::AttemptFacts& attempt : facts.attempts) {
      const protocol::TrialDirectory directory(runs_, id, attempt.attempt.number);
      if (attempt.outcome == results::Outcome::open) {
        done.left.push_back({id, fmt::format("attempt {} runs {}", attempt.attempt.number,
                                             where_it_runs(attempt))});
      } else if (!fs::is_directory(directory.folder(), error)) {
        done.left.push_back({id, fmt::format("attempt {} has no folder: {} is missing",
                                             attempt.attempt.number, directory.folder().string())});
      } else {
        add_attempt(directory, options_.checkpoints && !facts.result_attempt);
        any = true;
      }
    }
    done.trials += any ? 1 : 0;
  }

  void add_attempt(const protocol::TrialDirectory& directory, bool everything) {
    const fs::path& folder = directory.folder();
    std::vector<std::string> lacking;
    if (const auto note = read_merge_note(folder)) lacking = note->left_out;
    const auto unwanted = unwanted_.find({directory.trial_id(), directory.attempt()});
    for (const std::string& name : files_below(folder)) {
      if (folder / name == merge_note_file(folder)) continue;
      if (!everything && !outlives_the_trial(name)) continue;
      if (unwanted != unwanted_.end() && unwanted->second == name) {
        lacking.push_back(name);
        continue;
      }
      add(folder / name);
    }
    if (!lacking.empty()) {
      left_out[(fs::path("runs") / folder.lexically_relative(runs_)).string()] = lacking;
    }
    ++done.attempts;
  }

  const results::Reader& reader_;
  results::ContentsReader contents_;
  const fs::path& runs_;
  const ArchiveOptions& options_;
  std::map<std::pair<std::string, std::int64_t>, std::string> unwanted_;
};

}  // namespace

Archived write_archive(const results::Reader& reader, const fs::path& database,
                       const fs::path& runs, const fs::path& file, const ArchiveOptions& options) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error))) {
    throw std::invalid_argument(
        fmt::format("{}: already exists; move it, or name another file", file.string()));
  }
  Collection collection(reader, database, runs, options);
  collection.collect();
  Archived& done = collection.done;
  ArchiveList list;
  list.petlab = options.petlab;
  list.left_out = collection.left_out;
  for (const auto& [name, path] : collection.files) {
    list.files[name] = digest_of_file(path);
    done.bytes += list.files[name].size;
    ++done.files;
  }
  PendingArchive pending(file);
  ArchiveWriter writer(pending);
  const std::string text = archive_list_text(list);
  if (text.size() > kLargestArchiveList) {
    throw Error(
        fmt::format("{} files are too many for one archive; name some of the sweeps", done.files));
  }
  writer.begin(kArchiveList, text.size());
  writer.add(text.data(), text.size());
  for (const auto& [name, path] : collection.files) {
    const FileDigest& wanted = list.files[name];
    writer.begin(name, wanted.size);
    std::uintmax_t left = wanted.size;
    const FileDigest read = read_in_parts(path, [&](const char* data, std::size_t size) {
      const auto part = static_cast<std::size_t>(std::min<std::uintmax_t>(size, left));
      writer.add(data, part);
      left -= part;
    });
    if (read != wanted) {
      throw SourceError(
          fmt::format("{}: the file changed during the export; export again", path.string()));
    }
  }
  writer.end();
  pending.keep();
  done.archive_bytes = pending.size();
  done.digest = pending.digest();
  return done;
}

}  // namespace petlab::exchange
