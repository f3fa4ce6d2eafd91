#include "protocol/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/json_line.h"
#include "base/utf8.h"

namespace petlab::protocol {
namespace {

using Kind = base::JsonToken::Kind;

constexpr std::size_t kMaxLine = 1 << 20;
constexpr std::size_t kMaxReason = 4096;

enum Key {
  kV,
  kSeq,
  kTime,
  kType,
  kPid,
  kWorker,
  kVersion,
  kNumerics,
  kDigests,
  kProvenance,
  kStep,
  kOf,
  kLoss,
  kDeviceMemory,
  kSplit,
  kTask,
  kName,
  kValue,
  kPath,
  kArtifact,
  kBlsBits,
  kStoredBits,
  kPeakMemory,
  kTrainSeconds,
  kExamples,
  kReason,
  kKind,
  kKeys
};
constexpr std::array<std::string_view, kKeys> kNames = {"v",
                                                        "seq",
                                                        "time",
                                                        "type",
                                                        "pid",
                                                        "worker",
                                                        "version",
                                                        "numerics",
                                                        "digests",
                                                        "provenance",
                                                        "step",
                                                        "of",
                                                        "loss",
                                                        "device_memory_mib",
                                                        "split",
                                                        "task",
                                                        "name",
                                                        "value",
                                                        "path",
                                                        "artifact",
                                                        "bls_bits",
                                                        "stored_bits",
                                                        "peak_memory_mib",
                                                        "train_seconds",
                                                        "examples",
                                                        "reason",
                                                        "kind"};

// Finds a key, starting after the previous one. Keys are listed in the order of to_line, so each
// key of such a line is found immediately.
Key find_key(std::string_view key, std::size_t& from) {
  for (std::size_t i = 0; i < kKeys; ++i) {
    const std::size_t at = from + i < kKeys ? from + i : from + i - kKeys;
    if (kNames[at] == key) {
      from = at + 1 < kKeys ? at + 1 : 0;
      return static_cast<Key>(at);
    }
  }
  return kKeys;
}

class Fields {
 public:
  explicit Fields(std::string_view line) {
    base::JsonLine object(line);
    object.open();
    std::string_view key;
    std::size_t from = 0;
    while (object.next_key(key)) {
      const Key known = find_key(key, from);
      const base::JsonToken token = object.value();
      if (known != kKeys) tokens_[known] = token;
    }
  }

  const base::JsonToken& at(Key key) const { return tokens_[key]; }
  bool has(Key key) const { return tokens_[key].kind != Kind::absent; }

  std::string text(Key key) const {
    const base::JsonToken& token = tokens_[key];
    if (token.kind != Kind::string) refuse(key, "text");
    try {
      return base::unescaped(token);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(fmt::format("{}: {}", kNames[key], error.what()));
    }
  }
  std::string text_or(Key key, std::string_view otherwise) const {
    return has(key) ? text(key) : std::string(otherwise);
  }
  std::int64_t whole(Key key) const {
    const base::JsonToken& token = tokens_[key];
    std::int64_t value = 0;
    const char* const end = token.raw.data() + token.raw.size();
    const auto [stop, error] = std::from_chars(token.raw.data(), end, value);
    if (token.kind != Kind::number || error != std::errc() || stop != end || value < 0) {
      refuse(key, "a whole number >= 0");
    }
    return value;
  }
  double number(Key key) const {
    const base::JsonToken& token = tokens_[key];
    if (token.kind != Kind::number) refuse(key, "a number");
    double value = 0;
    const char* const end = token.raw.data() + token.raw.size();
    const auto [stop, error] = std::from_chars(token.raw.data(), end, value);
    if (error == std::errc::result_out_of_range) {
      // distinguishes tiny from huge numbers
      value = std::strtod(std::string(token.raw).c_str(), nullptr);
    }
    if (!std::isfinite(value)) refuse(key, "a number that a double can hold");
    return value;
  }
  std::optional<double> number_or_null(Key key) const {
    const Kind kind = tokens_[key].kind;
    if (kind == Kind::null) return std::nullopt;
    if (kind != Kind::number) refuse(key, "a number or null");
    return number(key);
  }
  std::optional<double> optional_number(Key key) const {
    return has(key) ? number_or_null(key) : std::nullopt;
  }
  std::optional<std::int64_t> optional_whole(Key key) const {
    if (!has(key) || tokens_[key].kind == Kind::null) return std::nullopt;
    return whole(key);
  }
  // A relative path that stays inside the attempt's folder.
  std::string path_inside(Key key) const {
    const std::filesystem::path path = text(key);
    const bool leads_out = path.is_absolute() ||
                           std::find(path.begin(), path.end(), "..") != path.end() ||
                           path.native().find('\0') != std::string::npos;
    if (path.empty() || leads_out) refuse(key, "a path inside the attempt's directory");
    return path.native();
  }
  std::optional<double> not_negative(Key key) const {
    const std::optional<double> value = optional_number(key);
    if (value && *value < 0) refuse(key, "a number >= 0");
    return value;
  }
  nlohmann::ordered_json object(Key key) const {
    const base::JsonToken& token = tokens_[key];
    if (token.kind != Kind::object) refuse(key, "an object");
    try {
      return nlohmann::ordered_json::parse(token.raw);
    } catch (const nlohmann::json::exception& error) {
      throw std::runtime_error(fmt::format("{}: {}", kNames[key], error.what()));
    }
  }
  [[noreturn]] void refuse(Key key, std::string_view wanted) const {
    const base::JsonToken& token = tokens_[key];
    std::string found = token.kind == Kind::absent ? "nothing" : std::string(token.raw);
    if (found.size() > 40) {
      std::size_t cut = 40;
      while (cut > 0 && (static_cast<unsigned char>(found[cut]) & 0xC0) == 0x80) --cut;
      found = found.substr(0, cut) + "…";
    }
    if (token.kind == Kind::string) found = fmt::format("'{}'", found);
    throw std::runtime_error(fmt::format("{}: found {}, expected {}", kNames[key], found, wanted));
  }

 private:
  std::array<base::JsonToken, kKeys> tokens_;
};

Started read_started(const Fields& fields) {
  Started started;
  started.pid = fields.whole(kPid);
  started.worker = fields.text_or(kWorker, "");
  started.version = fields.text_or(kVersion, "");
  if (fields.has(kNumerics)) started.numerics = fields.object(kNumerics).dump();
  if (fields.has(kProvenance)) started.provenance = fields.object(kProvenance).dump();
  if (!fields.has(kDigests)) return started;
  const nlohmann::ordered_json digests = fields.object(kDigests);
  constexpr std::string_view wanted = "{\"backbone\": text, \"data\": {TASK: text, …}}";
  if (const auto backbone = digests.find("backbone"); backbone != digests.end()) {
    if (!backbone->is_string()) fields.refuse(kDigests, wanted);
    started.backbone_digest = backbone->get<std::string>();
  }
  if (const auto data = digests.find("data"); data != digests.end()) {
    if (!data->is_object()) fields.refuse(kDigests, wanted);
    for (const auto& [task, digest] : data->items()) {
      if (!digest.is_string()) fields.refuse(kDigests, wanted);
      started.data_digests[task] = digest.get<std::string>();
    }
  }
  return started;
}

bool is_split(std::string_view word) {
  return word == "train" || word == "validation" || word == "test";
}

Examples read_examples(const Fields& fields) {
  const auto wanted = [&](bool holds) {
    if (holds) return;
    fields.refuse(kExamples,
                  "{TASK: {\"train\": N, \"validation\": N, \"test\": N}, …} with whole numbers "
                  ">= 0");
  };
  Examples examples;
  const nlohmann::ordered_json tasks = fields.object(kExamples);
  for (const auto& [task, splits] : tasks.items()) {
    wanted(splits.is_object());
    for (const auto& [split, number] : splits.items()) {
      // nlohmann::json parses non-negative numbers as unsigned.
      wanted(is_split(split) && number.is_number_unsigned() &&
             number.get<std::uint64_t>() <=
                 static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
      examples[task][split] = number.get<std::int64_t>();
    }
  }
  return examples;
}

Metric read_metric(const Fields& fields) {
  Metric metric;
  metric.step = fields.whole(kStep);
  metric.split = fields.text(kSplit);
  if (!is_split(metric.split)) fields.refuse(kSplit, "train, validation or test");
  metric.task = fields.text(kTask);
  metric.name = fields.text(kName);
  metric.value = fields.number_or_null(kValue);
  return metric;
}

Finished read_finished(const Fields& fields) {
  Finished finished;
  finished.step = fields.whole(kStep);
  if (fields.has(kArtifact)) finished.artifact = fields.path_inside(kArtifact);
  finished.bls_bits = fields.not_negative(kBlsBits);
  finished.stored_bits = fields.optional_whole(kStoredBits);
  finished.peak_memory_mib = fields.not_negative(kPeakMemory);
  finished.device_memory_mib = fields.not_negative(kDeviceMemory);
  finished.train_seconds = fields.not_negative(kTrainSeconds);
  if (fields.has(kExamples)) finished.examples = read_examples(fields);
  if (fields.has(kProvenance)) finished.provenance = fields.object(kProvenance).dump();
  return finished;
}

Failed read_failed(const Fields& fields) {
  Failed failed;
  failed.reason = fields.text(kReason);
  failed.kind = fields.text_or(kKind, "error");
  constexpr std::array<std::string_view, 5> kKinds = {"error", "out_of_memory", "not_finite",
                                                      "device", "gang"};
  if (std::find(kKinds.begin(), kKinds.end(), failed.kind) == kKinds.end()) {
    fields.refuse(kKind, "error, out_of_memory, not_finite, device or gang");
  }
  return failed;
}

// Appends `,"name":value` pairs to a line.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void text(Key key, std::string_view value) {
    name(key);
    if (base::first_invalid_utf8(value)) {
      throw std::invalid_argument(fmt::format("an event's {} is not UTF-8", kNames[key]));
    }
    base::append_quoted(out_, value);
  }
  void whole(Key key, std::int64_t value) {
    name(key);
    base::append_number(out_, value);
  }
  void number(Key key, std::optional<double> value) {
    name(key);
    if (value && std::isfinite(*value)) {
      base::append_number(out_, *value);
    } else {
      out_ += "null";
    }
  }
  void raw(Key key, std::string_view value) {
    name(key);
    out_ += value;
  }

 private:
  void name(Key key) {
    out_ += ",\"";
    out_ += kNames[key];
    out_ += "\":";
  }
  std::string& out_;
};

void write_provenance(Writer& out, const std::string& text) {
  if (text.empty()) return;
  const auto provenance = nlohmann::ordered_json::parse(text);
  if (!provenance.is_object()) throw std::invalid_argument("its provenance is not an object");
  out.raw(kProvenance, provenance.dump());
}

void write(Writer& out, const Started& started) {
  out.raw(kType, "\"started\"");
  out.whole(kPid, started.pid);
  out.text(kWorker, started.worker);
  out.text(kVersion, started.version);
  try {
    if (!started.numerics.empty()) {
      const auto numerics = nlohmann::ordered_json::parse(started.numerics);
      if (!numerics.is_object()) throw std::invalid_argument("it is not an object");
      out.raw(kNumerics, numerics.dump());
    }
    if (!started.backbone_digest.empty() || !started.data_digests.empty()) {
      nlohmann::ordered_json digests = nlohmann::ordered_json::object();
      if (!started.backbone_digest.empty()) digests["backbone"] = started.backbone_digest;
      if (!started.data_digests.empty()) digests["data"] = started.data_digests;
      out.raw(kDigests, digests.dump());
    }
    write_provenance(out, started.provenance);
  } catch (const std::exception& error) {
    throw std::invalid_argument(
        fmt::format("a started event cannot be written as JSON: {}", error.what()));
  }
}

void write(Writer& out, const Progress& progress) {
  out.raw(kType, "\"progress\"");
  out.whole(kStep, progress.step);
  out.whole(kOf, progress.of);
  out.number(kLoss, progress.loss);
  if (progress.device_memory_mib) out.number(kDeviceMemory, progress.device_memory_mib);
}

void write(Writer& out, const Metric& metric) {
  out.raw(kType, "\"metric\"");
  out.whole(kStep, metric.step);
  out.text(kSplit, metric.split);
  out.text(kTask, metric.task);
  out.text(kName, metric.name);
  out.number(kValue, metric.value);
}

void write(Writer& out, const Checkpoint& checkpoint) {
  out.raw(kType, "\"checkpoint\"");
  out.whole(kStep, checkpoint.step);
  out.text(kPath, checkpoint.path);
}

void write(Writer& out, const Finished& finished) {
  out.raw(kType, "\"finished\"");
  out.whole(kStep, finished.step);
  if (!finished.artifact.empty()) out.text(kArtifact, finished.artifact);
  if (finished.bls_bits) out.number(kBlsBits, finished.bls_bits);
  if (finished.stored_bits) out.whole(kStoredBits, *finished.stored_bits);
  if (finished.peak_memory_mib) out.number(kPeakMemory, finished.peak_memory_mib);
  if (finished.device_memory_mib) out.number(kDeviceMemory, finished.device_memory_mib);
  if (finished.train_seconds) out.number(kTrainSeconds, finished.train_seconds);
  try {
    if (!finished.examples.empty()) {
      out.raw(kExamples, nlohmann::json(finished.examples).dump());
    }
    write_provenance(out, finished.provenance);
  } catch (const std::exception& error) {
    throw std::invalid_argument(
        fmt::format("a finished event cannot be written as JSON: {}", error.what()));
  }
}

void write(Writer& out, const Failed& failed) {
  out.raw(kType, "\"failed\"");
  out.text(kReason, bounded_reason(failed.reason));
  out.text(kKind, failed.kind);
}

void write(Writer& out, const Stopped& stopped) {
  out.raw(kType, "\"stopped\"");
  out.whole(kStep, stopped.step);
}

}  // namespace

std::string to_line(const Event& event) {
  if (!std::isfinite(event.time)) {
    throw std::invalid_argument("an event's time is not finite, must be seconds since 1970");
  }
  std::string line;
  line.reserve(192);
  line += "{\"v\":1";
  Writer out(line);
  out.whole(kSeq, event.seq);
  out.number(kTime, event.time);
  std::visit([&](const auto& body) { write(out, body); }, event.body);
  line += '}';
  if (line.size() > kMaxLine) {
    throw std::invalid_argument(
        fmt::format("an event has {} bytes, must have at most {}", line.size(), kMaxLine));
  }
  return line;
}

std::string bounded_reason(std::string_view reason) {
  std::string text;
  while (const auto bad = base::first_invalid_utf8(reason)) {
    text += reason.substr(0, *bad);
    text += fmt::format("\\x{:02x}", static_cast<unsigned char>(reason[*bad]));
    reason.remove_prefix(*bad + 1);
  }
  text += reason;
  if (text.size() <= kMaxReason) return text;
  constexpr std::size_t kKept = kMaxReason / 2 - 32;  // at each end, leaving room for the note
  const auto inside_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  std::size_t begin = kKept;
  while (inside_character(begin)) --begin;
  std::size_t end = text.size() - kKept;
  while (inside_character(end)) ++end;
  return fmt::format("{} … ({} bytes left out) … {}", std::string_view(text).substr(0, begin),
                     end - begin, std::string_view(text).substr(end));
}

Event parse_event(std::string_view line) {
  if (line.size() > kMaxLine) {
    throw std::runtime_error(
        fmt::format("found a line of {} bytes, expected at most {}", line.size(), kMaxLine));
  }
  if (const auto bad = base::first_invalid_utf8(line)) {
    throw std::runtime_error(fmt::format("found the byte 0x{:02x} at byte {}, expected UTF-8",
                                         static_cast<unsigned char>(line[*bad]), *bad));
  }
  const Fields fields(line);
  if (fields.whole(kV) != 1) fields.refuse(kV, "1");
  Event event;
  event.seq = fields.whole(kSeq);
  event.time = fields.number(kTime);
  const base::JsonToken& type = fields.at(kType);
  const std::string_view name = type.kind == Kind::string ? type.raw : std::string_view();
  if (name == "metric") {
    event.body = read_metric(fields);
  } else if (name == "progress") {
    event.body = Progress{fields.whole(kStep), fields.whole(kOf), fields.number_or_null(kLoss),
                          fields.not_negative(kDeviceMemory)};
  } else if (name == "checkpoint") {
    event.body = Checkpoint{fields.whole(kStep), fields.path_inside(kPath)};
  } else if (name == "started") {
    event.body = read_started(fields);
  } else if (name == "finished") {
    event.body = read_finished(fields);
  } else if (name == "failed") {
    event.body = read_failed(fields);
  } else if (name == "stopped") {
    event.body = Stopped{fields.whole(kStep)};
  } else {
    fields.refuse(kType, "started, progress, metric, checkpoint, finished, failed or stopped");
  }
  return event;
}

}  // namespace petlab::protocol
