#include "exports/protobuf.h"

#include <bit>

namespace petlab::exports {

std::string little_endian(std::uint64_t value, int size) {
  std::string text;
  for (int i = 0; i < size; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

Message& Message::integer(int field, std::int64_t value) {
  key(field, 0);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::real(int field, double value) {
  key(field, 1);
  text_ += little_endian(std::bit_cast<std::uint64_t>(value), 8);
  return *this;
}

Message& Message::bytes(int field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  text_.append(value);
  return *this;
}

void Message::key(int field, int type) { varint(static_cast<std::uint64_t>(field << 3 | type)); }

void Message::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

}  // namespace petlab::exports
