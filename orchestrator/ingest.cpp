#include "orchestrator/ingest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "sweeps/trial_directory.h"

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kMaxLine = std::size_t{1} << 20;
constexpr std::size_t kChunk = std::size_t{4} << 20;  // holds a longest line and then some
constexpr std::size_t kRowsAtOnce = std::size_t{1} << 14;

}  // namespace

/// events.jsonl, opened for reading; or the fact that there is none.
class Ingest::File {
 public:
  explicit File(const std::filesystem::path& name) : name_(name) {
    descriptor_ = open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0 && errno != ENOENT) fail();
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool exists() const { return descriptor_ >= 0; }
  std::int64_t size() const {
    struct stat status = {};
    if (fstat(descriptor_, &status) != 0) fail();
    return status.st_size;
  }
  /// As many bytes as there are from `offset`, at most `size`.
  std::size_t read(char* into, std::size_t size, std::int64_t offset) const {
    std::size_t got = 0;
    while (got < size) {
      const ssize_t part =
          pread(descriptor_, into + got, size - got, offset + static_cast<std::int64_t>(got));
      if (part < 0 && errno == EINTR) continue;
      if (part < 0) fail();
      if (part == 0) break;
      got += static_cast<std::size_t>(part);
    }
    return got;
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error(
        fmt::format("{}: cannot be read: {}", name_.string(), std::strerror(errno)));
  }
  std::filesystem::path name_;
  int descriptor_ = -1;
};

namespace {

std::string_view type_of(const sweeps::Event& event) {
  constexpr std::string_view names[] = {"started",    "progress", "metric",
                                        "checkpoint", "finished", "failed"};
  return names[event.body.index()];
}

/// Why the event cannot come at this place; empty: it can.
std::string out_of_order(const sweeps::Event& event, std::int64_t next_seq) {
  if (event.seq != next_seq) {
    return fmt::format("seq is {}, must be {}", event.seq, next_seq);
  }
  const bool started = std::holds_alternative<sweeps::Started>(event.body);
  if (next_seq == 0 && !started) {
    return fmt::format("the first event is {}, must be started", type_of(event));
  }
  if (next_seq > 0 && started) return "started comes a second time, must be only the first event";
  return {};
}

/// Reads the lines of one call into a batch.
class Lines {
 public:
  Lines(results::Batch& batch, const results::AttemptRef& attempt, results::Cursor& cursor,
        std::vector<results::MetricRow>& rows, IngestUpdate& update)
      : batch_(batch), attempt_(attempt), cursor_(cursor), rows_(rows), update_(update) {
    rows_.clear();
  }

  /// `line` without its newline.
  void take(std::string_view line) {
    try {
      event_ = sweeps::parse_event(line);
    } catch (const std::runtime_error& error) {
      break_off(error.what());
      return;
    }
    if (const std::string problem = out_of_order(event_, cursor_.next_seq); !problem.empty()) {
      break_off(problem);
      return;
    }
    update_.last_time = event_.time;
    std::visit([&](const auto& body) { store(body); }, event_.body);
    ++cursor_.next_seq;
    ++cursor_.lines;
    ++update_.lines;
    cursor_.offset += static_cast<std::int64_t>(line.size()) + 1;
  }

  /// The worker broke the protocol: nothing from this line on counts.
  void break_off(std::string_view problem) {
    flush();
    sweeps::Failed failed;
    failed.kind = "protocol";
    failed.reason = fmt::format("{}/{}/events.jsonl:{}: {}", attempt_.trial_id, attempt_.number,
                                cursor_.lines + 1, problem);
    batch_.record_failed(attempt_, failed, std::nullopt);  // what it says of time is not believed
    update_.over = std::move(failed);
    cursor_.closed = true;
    cursor_.broken = true;
  }

  /// Writes what was gathered.
  void flush() {
    batch_.append_metrics(attempt_, rows_);
    rows_.clear();
  }

  void end() {
    flush();
    if (update_.progress) batch_.record_progress(attempt_, *update_.progress, progress_time_);
    if (update_.checkpoint) batch_.record_checkpoint(attempt_, *update_.checkpoint);
    batch_.set_cursor(attempt_, cursor_);
  }

 private:
  void store(const sweeps::Metric& metric) {
    rows_.push_back({event_.seq, metric.step, batch_.series(metric.split, metric.task, metric.name),
                     metric.value});
    if (rows_.size() == kRowsAtOnce) flush();
    if (metric.split == "validation") update_.validation.push_back(metric);
    ++update_.metrics;
  }
  void store(const sweeps::Progress& progress) {
    const std::optional<double> before =
        update_.progress ? update_.progress->device_memory_mib : std::nullopt;
    update_.progress = progress;
    // The database keeps the last progress of many, and the most memory.
    update_.progress->device_memory_mib = std::max(before, progress.device_memory_mib);
    progress_time_ = event_.time;
  }
  void store(const sweeps::Checkpoint& checkpoint) {
    update_.checkpoint = results::CheckpointAt{checkpoint.step, event_.seq, checkpoint.path};
  }
  void store(const sweeps::Started& started) {
    batch_.record_started(attempt_, started, event_.time);
    update_.started = started;
  }
  void store(const sweeps::Finished& finished) {
    batch_.record_finished(attempt_, finished, event_.time);
    update_.over = finished;
    cursor_.closed = true;
  }
  void store(const sweeps::Failed& failed) {
    batch_.record_failed(attempt_, failed, event_.time);
    update_.over = failed;
    cursor_.closed = true;
  }

  results::Batch& batch_;
  const results::AttemptRef& attempt_;
  results::Cursor& cursor_;
  std::vector<results::MetricRow>& rows_;
  IngestUpdate& update_;
  sweeps::Event event_;
  double progress_time_ = 0;
};

}  // namespace

Ingest::Ingest(results::Store& store, std::filesystem::path runs)
    : store_(store), runs_(std::move(runs)) {}

IngestUpdate Ingest::read(results::Batch& batch, const results::AttemptRef& attempt,
                          std::size_t max_bytes) {
  IngestUpdate update;
  const File file(sweeps::TrialDirectory(runs_, attempt.trial_id, attempt.number).events());
  if (!file.exists()) return update;
  const std::int64_t size = file.size();
  Seen& seen = seen_[attempt.key];
  if (seen.size == size && seen.serial > store_.last_rolled_back()) return update;
  seen = {size, batch.serial()};

  // From the database and not from memory: another process may have read on.
  results::Cursor cursor = store_.read().cursor(attempt);
  if (buffer_.empty()) buffer_.resize(kChunk);
  if (cursor.closed) {
    note_what_follows(batch, attempt, file, size, cursor, update);
    return update;
  }
  Lines lines(batch, attempt, cursor, rows_, update);
  if (size < cursor.offset) {
    lines.break_off(
        fmt::format("the file has {} bytes, {} were read already", size, cursor.offset));
  } else if (cursor.offset > 0 &&
             (file.read(buffer_.data(), 1, cursor.offset - 1) != 1 || buffer_[0] != '\n')) {
    lines.break_off("the lines before it, which were read already, have changed");
  }
  const std::int64_t stop = cursor.offset + static_cast<std::int64_t>(max_bytes);
  bool all_read = false;
  while (!cursor.closed && !all_read && !update.more) {
    // What was written after the file's size was asked is left for the next call.
    const auto left = static_cast<std::size_t>(std::max<std::int64_t>(0, size - cursor.offset));
    const std::size_t wanted = std::min(left, buffer_.size());
    const std::size_t got = file.read(buffer_.data(), wanted, cursor.offset);
    all_read = got < wanted || left <= buffer_.size();
    const std::string_view read(buffer_.data(), got);
    std::size_t begin = 0;
    while (!cursor.closed) {
      const std::size_t end = read.find('\n', begin);
      if (std::min(end, got) - begin > kMaxLine) {
        lines.break_off("the line is longer than 1 MiB");
      } else if (end == std::string_view::npos) {
        break;
      } else if (cursor.offset >= stop) {
        update.more = true;
        seen.size = -1;
        break;
      } else {
        lines.take(read.substr(begin, end - begin));
        begin = end + 1;
      }
    }
  }
  if (cursor.closed || update.lines > 0) lines.end();
  if (cursor.closed) note_what_follows(batch, attempt, file, size, cursor, update);
  return update;
}

void Ingest::note_what_follows(results::Batch& batch, const results::AttemptRef& attempt,
                               const File& file, std::int64_t size, const results::Cursor& cursor,
                               IngestUpdate& update) {
  if (cursor.broken || size <= cursor.offset) return;
  const std::size_t bytes = file.read(buffer_.data(), buffer_.size(), cursor.offset);
  if (std::string_view(buffer_.data(), bytes).find('\n') == std::string_view::npos) return;
  update.note = fmt::format(
      "{}/{}/events.jsonl:{}: a line after the last event (finished or failed); it is "
      "ignored",
      attempt.trial_id, attempt.number, cursor.lines + 1);
  batch.record_note(attempt, update.note);
}

IngestUpdate Ingest::read_all(const results::AttemptRef& attempt) {
  IngestUpdate all;
  while (true) {
    results::Batch batch = store_.begin();
    IngestUpdate update = read(batch, attempt);
    batch.commit();
    update.lines += all.lines;
    update.metrics += all.metrics;
    if (!update.started) update.started = std::move(all.started);
    if (!update.progress) update.progress = all.progress;
    if (!update.checkpoint) update.checkpoint = std::move(all.checkpoint);
    if (update.last_time == 0) update.last_time = all.last_time;
    if (!update.more) return update;
    all = std::move(update);
  }
}

void Ingest::forget(const results::AttemptRef& attempt) { seen_.erase(attempt.key); }

}  // namespace petlab::orchestrator
