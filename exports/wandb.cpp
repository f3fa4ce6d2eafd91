#include "exports/wandb.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <map>

#include "exports/protobuf.h"
#include "exports/transaction_log.h"

namespace petlab::exports {
namespace {

namespace fs = std::filesystem;

// The numbers of fields are those of wandb/proto/wandb_internal.proto.
enum RecordField { kHistory = 2, kSummary = 3, kRunRecord = 17, kExit = 18, kHeader = 21 };
constexpr int kValueJson = 16;  // in ConfigItem, HistoryItem and SummaryItem
enum class Key { plain = 1, nested = 2 };

constexpr std::size_t kLongestProject = 128;

std::string item(Key key, std::string_view name, std::string_view json) {
  return Message().bytes(static_cast<int>(key), name).bytes(kValueJson, json).text();
}

// W&B's JSON has NaN.
std::string number_json(std::optional<double> value) { return value ? json_text(*value) : "NaN"; }

std::string run_record(const Run& run) {
  Message config;
  config.bytes(1, item(Key::plain, "_wandb", "{}"));
  for (const auto& [name, value] : run.parameters) {
    config.bytes(1, item(Key::plain, name, json_text(value)));
  }
  for (const auto& [name, value] : run.facts()) {
    config.bytes(1, item(Key::plain, name, json_text(value)));
  }
  const double seconds = std::floor(run.begun);
  Message record;
  record.bytes(1, run.id())
      .bytes(3, restricted_name(run.sweep, "_.- ", kLongestProject))
      .bytes(4, config.text());
  if (!run.variant.empty()) record.bytes(6, run.variant);
  record.bytes(8, run.title());
  if (!run.host.empty()) record.bytes(13, run.host);
  return record
      .bytes(17, Message()
                     .integer(1, static_cast<std::int64_t>(seconds))
                     .integer(2, static_cast<std::int64_t>((run.begun - seconds) * 1e9))
                     .text())
      .text();
}

class RunFile {
 public:
  explicit RunFile(const fs::path& file) : log_(file) {}
  void record(RecordField field, const std::string& content) {
    log_.add(Message().integer(1, ++records_).bytes(field, content).text());
  }
  void close() { log_.close(); }

 private:
  TransactionLog log_;
  std::int64_t records_ = 0;
};

}  // namespace

void WandbWriter::write(const Run& run) {
  const std::string id = run.id();
  const std::time_t begun = static_cast<std::time_t>(run.begun);
  const fs::path folder =
      folder_ / fmt::format("offline-run-{:%Y%m%d_%H%M%S}-{}", fmt::gmtime(begun), id);
  make_folders(folder);
  RunFile file(folder / fmt::format("run-{}.wandb", id));
  file.record(kHeader, Message().bytes(1, Message().bytes(1, "petlab").text()).text());
  file.record(kRunRecord, run_record(run));
  std::map<std::string, std::string> last;  // JSON by tag
  for (const Row& row : rows_of(run)) {
    std::map<std::string, std::string> values = {
        {"_step", std::to_string(row.step)},
        {"_timestamp", number_json(row.time)},
        {"_runtime", number_json(row.time - run.begun)},
    };
    for (const Point* point : row.points) values[point->tag()] = number_json(point->value);
    Message history;
    for (const auto& [tag, json] : values) {
      history.bytes(1, item(Key::nested, tag, json));
      last[tag] = json;
    }
    file.record(kHistory, history.bytes(2, Message().integer(1, row.step).text()).text());
  }
  Message summary;
  for (const auto& [tag, json] : last) summary.bytes(1, item(Key::nested, tag, json));
  file.record(kSummary, summary.text());
  if (run.ended) {
    file.record(kExit, Message()
                           .integer(1, run.end == RunEnd::success ? 0 : 1)
                           .integer(2, static_cast<std::int64_t>(*run.ended - run.begun))
                           .text());
  }
  file.close();
  count(run);
}

}  // namespace petlab::exports
