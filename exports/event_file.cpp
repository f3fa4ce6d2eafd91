#include "exports/event_file.h"

#include <fmt/format.h>

#include <bit>
#include <boost/crc.hpp>
#include <limits>

#include "base/error.h"
#include "exports/protobuf.h"

namespace petlab::exports {
namespace {

// CRC-32C, rotated and offset so that records may contain records (TensorFlow's crc32c.h).
std::string masked_crc(const std::string& text) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(text.data(), text.size());
  const std::uint32_t sum = crc.checksum();
  return little_endian(((sum >> 15 | sum << 17) + 0xa282ead8U) & 0xffffffffU, 4);
}

// tensorflow.DataType
constexpr int kFloat = 1;
constexpr int kDouble = 2;
// tensorboard.DataClass
constexpr int kScalarClass = 1;
constexpr int kTensorClass = 2;

std::string packed(double value) { return little_endian(std::bit_cast<std::uint64_t>(value), 8); }

// tensorflow.SummaryMetadata
std::string metadata(std::string_view plugin, std::string_view content, int data_class) {
  Message data;
  data.bytes(1, plugin);
  if (!content.empty()) data.bytes(2, content);
  return Message().bytes(1, data.text()).integer(4, data_class).text();
}

// A tensorflow.TensorProto of one zero: the HParams page reads only the metadata.
std::string no_tensor() {
  return Message()
      .integer(1, kFloat)
      .bytes(2, Message().bytes(2, Message().integer(1, 1).text()).text())
      .bytes(5, std::string(4, '\0'))
      .text();
}

// google.protobuf.Value
std::string value_of(const Hparam& hparam) {
  Message value;
  if (const auto* number = std::get_if<double>(&hparam.second)) {
    value.real(2, *number);
  } else if (const auto* flag = std::get_if<bool>(&hparam.second)) {
    value.integer(4, *flag ? 1 : 0);
  } else {
    value.bytes(3, std::get<std::string>(hparam.second));
  }
  return value.text();
}

}  // namespace

EventFile::EventFile(std::filesystem::path file, double time)
    : file_(std::move(file)), out_(file_, std::ios::binary | std::ios::trunc) {
  record(Message().real(1, time).bytes(3, "brain.Event:2").text());
}

void EventFile::scalar(std::string_view tag, std::int64_t step, double time,
                       std::optional<double> value) {
  const double number = value.value_or(std::numeric_limits<double>::quiet_NaN());
  summary(tag, step, time,
          Message().integer(1, kDouble).bytes(2, "").bytes(6, packed(number)).text(),
          metadata("scalars", "", kScalarClass));
}

void EventFile::begin_run(const std::vector<Hparam>& hparams, double time) {
  Message info;
  for (const Hparam& one : hparams) {
    info.bytes(1, Message().bytes(1, one.first).bytes(2, value_of(one)).text());
  }
  info.real(5, time);
  summary("_hparams_/session_start_info", 0, time, no_tensor(),
          metadata("hparams", Message().bytes(3, info.text()).text(), kTensorClass));
}

void EventFile::end_run(RunEnd end, double time) {
  Message info;
  info.integer(1, static_cast<int>(end)).real(2, time);
  summary("_hparams_/session_end_info", 0, time, no_tensor(),
          metadata("hparams", Message().bytes(4, info.text()).text(), kTensorClass));
}

void EventFile::close() {
  out_.close();
  if (!out_) {
    throw base::Error(fmt::format("{}: cannot be written; is the disk full?", file_.string()));
  }
}

void EventFile::summary(std::string_view tag, std::int64_t step, double time,
                        const std::string& tensor, const std::string& about) {
  const std::string value = Message().bytes(1, tag).bytes(8, tensor).bytes(9, about).text();
  record(
      Message().real(1, time).integer(2, step).bytes(5, Message().bytes(1, value).text()).text());
}

void EventFile::record(const std::string& event) {
  const std::string length = little_endian(event.size(), 8);
  out_ << length << masked_crc(length) << event << masked_crc(event);
}

}  // namespace petlab::exports
