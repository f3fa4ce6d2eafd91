#include "exports/transaction_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <string>

#include "base/error.h"
#include "exports/protobuf.h"

namespace petlab::exports {
namespace {

constexpr std::size_t kBlock = 32768;
constexpr std::size_t kFragmentHeader = 7;

enum FragmentKind : char { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

}  // namespace

TransactionLog::TransactionLog(std::filesystem::path file)
    : file_(std::move(file)), out_(file_, std::ios::binary | std::ios::trunc) {
  put(":W&B" + little_endian(0xBEE1, 2) + little_endian(0, 1));  // magic number, version
}

void TransactionLog::add(std::string_view record) {
  bool first = true;
  do {
    std::size_t left = kBlock - in_block_;
    if (left < kFragmentHeader) {
      put(std::string(left, '\0'));
      left = kBlock;
    }
    const std::string_view part = record.substr(0, left - kFragmentHeader);
    record.remove_prefix(part.size());
    const char kind = record.empty() ? (first ? kFull : kLast) : (first ? kFirst : kMiddle);
    boost::crc_32_type crc;
    crc.process_byte(static_cast<unsigned char>(kind));
    crc.process_bytes(part.data(), part.size());
    put(little_endian(crc.checksum(), 4) + little_endian(part.size(), 2) + kind);
    put(part);
    first = false;
  } while (!record.empty());
}

void TransactionLog::close() {
  out_.close();
  if (!out_) {
    throw base::Error(fmt::format("{}: cannot be written; is the disk full?", file_.string()));
  }
}

void TransactionLog::put(std::string_view bytes) {
  out_ << bytes;
  in_block_ = (in_block_ + bytes.size()) % kBlock;
}

}  // namespace petlab::exports
