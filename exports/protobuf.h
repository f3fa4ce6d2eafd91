#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace petlab::exports {

/// `size` bytes of a number, the lowest first.
std::string little_endian(std::uint64_t value, int size);

/// A protobuf message, written field by field. The messages that petlab writes are small and their
/// field numbers never change, so they need neither protobuf's library nor copies of its schemas.
class Message {
 public:
  Message& integer(int field, std::int64_t value);
  Message& real(int field, double value);
  /// A text, bytes or a nested message.
  Message& bytes(int field, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  void key(int field, int type);
  void varint(std::uint64_t value);

  std::string text_;
};

}  // namespace petlab::exports
