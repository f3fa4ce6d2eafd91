#include "orchestrator/records/ingest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/invariant.h"
#include "protocol/trial_directory.h"
#include "results/attempt_events.h"

namespace petlab::orchestrator {
namespace {

constexpr std::size_t kMaxLine = std::size_t{1} << 20;
constexpr std::size_t kChunk = std::size_t{4} << 20;  // larger than the longest line

}  // namespace

/// events.jsonl opened for reading, if it exists.
class Ingest::File {
 public:
  explicit File(const std::filesystem::path& name)
      : name_(name), in_(open(name.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!in_ && errno != ENOENT) fail();
  }

  bool exists() const { return static_cast<bool>(in_); }
  std::int64_t size() const {
    struct stat status = {};
    if (fstat(in_.get(), &status) != 0) fail();
    return status.st_size;
  }
  /// Reads up to `size` bytes from `offset`; fewer only at the end of the file.
  std::size_t read(char* into, std::size_t size, std::int64_t offset) const {
    std::size_t got = 0;
    while (got < size) {
      const ssize_t part =
          pread(in_.get(), into + got, size - got, offset + static_cast<std::int64_t>(got));
      if (part < 0 && errno == EINTR) continue;
      if (part < 0) fail();
      if (part == 0) break;
      got += static_cast<std::size_t>(part);
    }
    return got;
  }

  void sync() const {
    if (fdatasync(in_.get()) != 0) fail("cannot be synced");
  }

  /// Describes loss or change of the part already read; empty if unchanged.
  std::string lost_since(const results::Cursor& cursor) const {
    const std::int64_t bytes = size();
    if (bytes < cursor.offset) {
      return fmt::format("the file has {} bytes, but {} were already read", bytes, cursor.offset);
    }
    char last = '\n';
    if (cursor.offset > 0 && (read(&last, 1, cursor.offset - 1) != 1 || last != '\n')) {
      return "the lines before it have changed since they were read";
    }
    return {};
  }

 private:
  [[noreturn]] void fail(std::string_view what = "cannot be read") const {
    throw std::runtime_error(fmt::format("{}: {}: {}", name_.string(), what, std::strerror(errno)));
  }
  std::filesystem::path name_;
  base::FileDescriptor in_;
};

namespace {

std::string_view type_of(const protocol::Event& event) {
  constexpr std::string_view names[] = {"started",  "progress", "metric", "checkpoint",
                                        "finished", "failed",   "stopped"};
  return names[event.body.index()];
}

/// Returns why the event cannot come next; empty if it can.
std::string out_of_order(const protocol::Event& event, std::int64_t next_seq) {
  if (event.seq != next_seq) {
    return fmt::format("seq is {}, must be {}", event.seq, next_seq);
  }
  const bool started = std::holds_alternative<protocol::Started>(event.body);
  if (next_seq == 0 && !started) {
    return fmt::format("the first event is {}, must be started", type_of(event));
  }
  if (next_seq > 0 && started) return "started occurs a second time, must be the first event only";
  return {};
}

}  // namespace

/// Parses the lines of one look.
class EventLines {
 public:
  explicit EventLines(NewEvents& events) : events_(events), cursor_(events.after_) {}

  /// `line` excludes its newline.
  void take(std::string_view line) {
    try {
      event_ = protocol::parse_event(line);
    } catch (const std::runtime_error& error) {
      break_off(error.what());
      return;
    }
    if (const std::string problem = out_of_order(event_, cursor_.next_seq); !problem.empty()) {
      break_off(problem);
      return;
    }
    IngestUpdate& update = events_.update_;
    update.last_time = event_.time;
    std::visit([&](const auto& body) { take(body); }, event_.body);
    ++cursor_.next_seq;
    ++cursor_.lines;
    ++update.lines;
    cursor_.offset += static_cast<std::int64_t>(line.size()) + 1;
  }

  /// The worker broke the protocol. Ignores everything from this line on.
  void break_off(std::string_view problem) {
    const results::AttemptRef& attempt = events_.attempt_;
    protocol::Failed failed;
    failed.kind = "protocol";
    failed.reason = fmt::format("{}/{}/events.jsonl:{}: {}", attempt.trial_id, attempt.number,
                                cursor_.lines + 1, problem);
    events_.update_.over = std::move(failed);
    cursor_.closed = true;
    cursor_.broken = true;
  }

 private:
  void take(const protocol::Metric& metric) {
    events_.rows_.push_back({event_.seq, metric.step, series(metric), metric.value});
    if (metric.split == "validation") events_.update_.validation.push_back(metric);
    ++events_.update_.metrics;
  }
  void take(const protocol::Progress& progress) {
    IngestUpdate& update = events_.update_;
    const std::optional<double> before =
        update.progress ? update.progress->device_memory_mib : std::nullopt;
    update.progress = progress;
    // The database stores the last progress, but the highest memory use.
    update.progress->device_memory_mib = std::max(before, progress.device_memory_mib);
    events_.losses_.push_back({event_.seq, progress.step, progress.loss});
    events_.progress_time_ = event_.time;
    events_.progress_seq_ = event_.seq;
  }
  void take(const protocol::Checkpoint& checkpoint) {
    events_.update_.checkpoint =
        results::CheckpointAt{checkpoint.step, event_.seq, checkpoint.path};
  }
  void take(const protocol::Started& started) {
    events_.update_.started = started;
    events_.started_time_ = event_.time;
  }
  void take(const protocol::Finished& finished) { end(finished); }
  void take(const protocol::Failed& failed) { end(failed); }
  void take(const protocol::Stopped& stopped) { end(stopped); }
  template <typename End>
  void end(const End& how) {
    events_.update_.over = how;
    events_.over_time_ = event_.time;
    cursor_.closed = true;
  }

  results::Series series(const protocol::Metric& metric) {
    std::string& joined = joined_;
    joined.assign(metric.split).append(1, '\x1f');
    joined.append(metric.task).append(1, '\x1f').append(metric.name);
    const auto [known, is_new] =
        places_.emplace(joined, static_cast<std::int64_t>(events_.series_.size()));
    if (is_new) events_.series_.push_back({metric.split, metric.task, metric.name});
    return {known->second};
  }

  NewEvents& events_;
  results::Cursor& cursor_;
  protocol::Event event_;
  std::string joined_;
  std::unordered_map<std::string, std::int64_t> places_;
};

Ingest::Ingest(results::Store& store, std::filesystem::path runs, Ends ends)
    : store_(store), runs_(std::move(runs)), ends_(ends) {}

void Ingest::expect(const results::Batch& batch, const results::AttemptRef& attempt) {
  read_marks_[attempt.key] = {-1, batch.serial(), {}};
}

Ingest::ReadMark Ingest::mark_at(const results::Cursor& cursor) const {
  const std::int64_t next = std::max(store_.last_committed(), store_.last_rolled_back()) + 1;
  return {-1, next, cursor};
}

NewEvents Ingest::look(const results::AttemptRef& attempt, std::size_t max_bytes, Writer writer) {
  NewEvents events;
  events.attempt_ = attempt;
  const File file(protocol::TrialDirectory(runs_, attempt.trial_id, attempt.number).events());
  if (!file.exists()) return events;
  const std::int64_t size = file.size();
  auto mark = read_marks_.find(attempt.key);
  if (mark != read_marks_.end() && mark->second.serial <= store_.last_rolled_back()) {
    read_marks_.erase(mark);
    mark = read_marks_.end();
  }
  if (mark == read_marks_.end()) {
    mark =
        read_marks_.emplace(attempt.key, mark_at(results::cursor_of(store_.read(), attempt))).first;
  }
  // Unchanged since the last look. An incomplete last line is read again: it may have been
  // completed without a change of size.
  const results::Cursor& known = mark->second.cursor;
  if (mark->second.size == size && (known.closed || known.offset == size)) return events;
  mark->second.size = size;
  results::Cursor& cursor = events.after_;
  events.before_ = cursor = mark->second.cursor;
  if (buffer_.empty()) buffer_.resize(kChunk);
  EventLines lines(events);
  if (const std::string problem = cursor.closed ? "" : file.lost_since(cursor); !problem.empty()) {
    if (writer == Writer::gone) {
      read_marks_.erase(mark);
      throw std::runtime_error(
          fmt::format("{}/{}/events.jsonl: {}; after a power cut, the next petlab run of its sweep "
                      "rereads the file",
                      attempt.trial_id, attempt.number, problem));
    }
    lines.break_off(problem);
  }
  IngestUpdate& update = events.update_;
  const std::int64_t stop = cursor.offset + static_cast<std::int64_t>(max_bytes);
  bool all_read = false;
  while (!cursor.closed && !all_read && !update.more) {
    // Bytes written after the size was read are left for the next call.
    const auto left = static_cast<std::size_t>(std::max<std::int64_t>(0, size - cursor.offset));
    const std::size_t wanted = std::min(left, buffer_.size());
    const std::size_t got = file.read(buffer_.data(), wanted, cursor.offset);
    all_read = got < wanted || left <= buffer_.size();
    std::string_view read(buffer_.data(), got);
    if (writer == Writer::gone && read.find('\0') != std::string_view::npos) {
      read = read.substr(0, read.find('\0'));
      all_read = true;
    }
    std::size_t begin = 0;
    while (!cursor.closed) {
      const std::size_t end = read.find('\n', begin);
      if (std::min(end, read.size()) - begin > kMaxLine) {
        lines.break_off("the line is longer than 1 MiB");
      } else if (end == std::string_view::npos) {
        break;
      } else if (cursor.offset >= stop) {
        update.more = true;
        mark->second.size = -1;
        break;
      } else {
        lines.take(read.substr(begin, end - begin));
        begin = end + 1;
      }
    }
  }
  if (cursor.closed) note_what_follows(file, size, events);
  if (ends_ == Ends::synced && update.over &&
      !std::holds_alternative<protocol::Stopped>(*update.over)) {
    file.sync();
  }
  mark->second.cursor = cursor;
  return events;
}

void Ingest::store(results::Batch& batch, const NewEvents& events) {
  const results::AttemptRef& attempt = events.attempt_;
  const IngestUpdate& update = events.update_;
  if (const auto mark = read_marks_.find(attempt.key); mark != read_marks_.end()) {
    mark->second.serial = batch.serial();
  }
  if (!update.note.empty()) results::record_note(batch, attempt, update.note);
  if (events.after_ == events.before_) return;
  // Read from the database, because another process may have stored some or all of the events.
  const results::Cursor stored = results::cursor_of(store_.read(), attempt);
  PETLAB_INVARIANT(
      stored.next_seq >= events.before_.next_seq && stored.offset >= events.before_.offset,
      fmt::format("the database has {} events of attempt {} of {}, but {} were read before",
                  stored.next_seq, attempt.number, attempt.trial_id, events.before_.next_seq));
  const auto is_new = [&](std::int64_t seq) { return seq >= stored.next_seq; };
  if (stored.closed || (events.after_.next_seq <= stored.next_seq && !events.after_.closed)) return;
  if (update.started && is_new(0)) {
    results::record_started(batch, attempt, *update.started, events.started_time_);
  }
  std::vector<results::Series> series;
  series.reserve(events.series_.size());
  for (const NewEvents::SeriesName& one : events.series_) {
    series.push_back(results::series_in(batch, one.split, one.task, one.name));
  }
  std::vector<results::MetricReport> rows;
  rows.reserve(events.rows_.size());
  for (results::MetricReport row : events.rows_) {
    if (!is_new(row.seq)) continue;
    row.series = series[static_cast<std::size_t>(row.series.key)];
    rows.push_back(row);
  }
  results::append_metrics(batch, attempt, rows);
  if (update.progress && is_new(events.progress_seq_)) {
    std::span<const results::LossReport> losses = events.losses_;
    while (!is_new(losses.front().seq)) losses = losses.subspan(1);
    results::record_progress(batch, attempt, *update.progress, events.progress_time_, losses);
  }
  if (update.checkpoint && is_new(update.checkpoint->seq)) {
    results::record_checkpoint(batch, attempt, *update.checkpoint);
  }
  if (update.over) {
    if (const auto* finished = std::get_if<protocol::Finished>(&*update.over)) {
      results::record_finished(batch, attempt, *finished, *events.over_time_);
    } else if (const auto* failed = std::get_if<protocol::Failed>(&*update.over)) {
      results::record_failed(batch, attempt, *failed, events.over_time_);
    }  // how a stopped attempt ended is the orchestrator's to say
  }
  results::set_cursor(batch, attempt, events.after_);
}

IngestUpdate Ingest::read(results::Batch& batch, const results::AttemptRef& attempt,
                          std::size_t max_bytes) {
  const NewEvents events = look(attempt, max_bytes);
  store(batch, events);
  return events.update();
}

void Ingest::note_what_follows(const File& file, std::int64_t size, NewEvents& events) {
  const results::Cursor& cursor = events.after_;
  if (cursor.broken || size <= cursor.offset) return;
  const std::size_t bytes = file.read(buffer_.data(), buffer_.size(), cursor.offset);
  if (std::string_view(buffer_.data(), bytes).find('\n') == std::string_view::npos) return;
  events.update_.note = fmt::format(
      "{}/{}/events.jsonl:{}: ignored a line after the last event (finished, failed or stopped)",
      events.attempt_.trial_id, events.attempt_.number, cursor.lines + 1);
}

IngestUpdate Ingest::read_all(const results::AttemptRef& attempt, Writer writer) {
  IngestUpdate none;
  none.more = true;
  return read_rest(attempt, std::move(none), writer);
}

IngestUpdate Ingest::read_again(const results::AttemptRef& attempt) {
  read_marks_.insert_or_assign(attempt.key, mark_at({}));
  const NewEvents events = look(attempt, kMaxBytes, Writer::gone);
  results::Batch batch = store_.begin();
  results::forget_events(batch, attempt);
  store(batch, events);
  batch.commit();
  return read_rest(attempt, events.update(), Writer::gone);
}

// Combines `all` with the updates that follow.
IngestUpdate Ingest::read_rest(const results::AttemptRef& attempt, IngestUpdate all,
                               Writer writer) {
  while (all.more) {
    const NewEvents events = look(attempt, kMaxBytes, writer);
    results::Batch batch = store_.begin();
    store(batch, events);
    batch.commit();
    IngestUpdate update = events.update();
    update.lines += all.lines;
    update.metrics += all.metrics;
    if (!update.started) update.started = std::move(all.started);
    if (!update.progress) update.progress = all.progress;
    if (!update.checkpoint) update.checkpoint = std::move(all.checkpoint);
    if (update.last_time == 0) update.last_time = all.last_time;
    all = std::move(update);
  }
  return all;
}

bool Ingest::is_cut(const results::AttemptRef& attempt) {
  const results::Cursor cursor = results::cursor_of(store_.read(), attempt);
  const File file(protocol::TrialDirectory(runs_, attempt.trial_id, attempt.number).events());
  if (!file.exists()) return cursor.offset > 0;
  if (!file.lost_since(cursor).empty()) return true;
  if (buffer_.empty()) buffer_.resize(kChunk);
  for (std::int64_t at = 0; at < cursor.offset; at += std::ssize(buffer_)) {
    const std::size_t got = file.read(buffer_.data(), buffer_.size(), at);
    if (std::string_view(buffer_.data(), got).find('\0') != std::string_view::npos) return true;
  }
  return false;
}

void Ingest::forget(const results::AttemptRef& attempt) { read_marks_.erase(attempt.key); }

}  // namespace petlab::orchestrator
