#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/utf8.h"
#include "trainer/files/error.h"
#include "trainer/tokenizers/unigram_model.h"

namespace petlab::trainer {
namespace {

/// Reads the fields of a protocol buffer message in order
/// (protobuf.dev/programming-guides/encoding).
class MessageReader {
 public:
  /// `begin` is the message's offset in the file, for error messages.
  MessageReader(std::string_view bytes, std::size_t begin, const std::string& file)
      : bytes_(bytes), begin_(begin), file_(file) {}

  struct WireField {
    std::uint64_t number = 0;
    std::uint64_t whole = 0;  // of a varint or fixed-size field
    std::string_view bytes;   // of a string or message
    std::size_t at = 0;       // offset of those bytes in the file
    bool has_bytes = false;
  };

  /// The next field; std::nullopt at the end. Throws Error for invalid bytes.
  std::optional<WireField> next() {
    if (at_ == bytes_.size()) return std::nullopt;
    const std::uint64_t key = varint();
    WireField field;
    field.number = key >> 3;
    switch (key & 7) {
      case 0:
        field.whole = varint();
        return field;
      case 1:
        field.whole = fixed(8);
        return field;
      case 2: {
        const std::uint64_t length = varint();
        if (length > bytes_.size() - at_) refuse("a field ends beyond the file");
        field.bytes = bytes_.substr(at_, static_cast<std::size_t>(length));
        field.at = begin_ + at_;
        field.has_bytes = true;
        at_ += static_cast<std::size_t>(length);
        return field;
      }
      case 5:
        field.whole = fixed(4);
        return field;
      default:
        refuse("an unknown field");
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}: byte {}: {}: not a SentencePiece model, or a damaged one", file_,
                            begin_ + at_ + 1, what));
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) refuse("a number ends beyond the file");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number is too long");
  }

  std::uint64_t fixed(std::size_t size) {
    if (size > bytes_.size() - at_) refuse("a number ends beyond the file");
    std::uint64_t value = 0;
    for (std::size_t i = size; i > 0; --i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at_ + i - 1]);
    }
    at_ += size;
    return value;
  }

  std::string_view bytes_;
  std::size_t begin_;
  const std::string& file_;
  std::size_t at_ = 0;
};

// Field numbers from sentencepiece_model.proto.
constexpr std::uint64_t kUnknownPiece = 2;

UnigramModel::Piece read_piece(const MessageReader::WireField& message, const std::string& file,
                               bool& unknown) {
  MessageReader reader(message.bytes, message.at, file);
  UnigramModel::Piece piece;
  while (const auto field = reader.next()) {
    if (field->number == 1 && field->has_bytes) {
      if (base::first_invalid_utf8(field->bytes)) reader.refuse("a piece is not UTF-8");
      piece.text = field->bytes;
    } else if (field->number == 2) {
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->whole));
      if (!(piece.score - piece.score == 0)) reader.refuse("a score is not finite");
    } else if (field->number == 3) {
      unknown = field->whole == kUnknownPiece;
    }
  }
  if (piece.text.empty()) reader.refuse("a piece is empty");
  return piece;
}

/// Rejects a message that differs from T5's in one of the fields.
void require_fields(
    const MessageReader::WireField& message, const std::string& file, const std::string& name,
    std::initializer_list<std::tuple<std::uint64_t, const char*, std::uint64_t>> wanted) {
  MessageReader reader(message.bytes, message.at, file);
  while (const auto field = reader.next()) {
    for (const auto& [number, what, value] : wanted) {
      if (field->number == number && field->whole != value) {
        throw Error(
            fmt::format("{}: {}.{} is {}, expected {}", file, name, what, field->whole, value));
      }
    }
  }
}

}  // namespace

UnigramModel parse_sentencepiece(std::string_view bytes, const std::string& file) {
  UnigramModel model;
  std::optional<std::int32_t> unknown;
  MessageReader reader(bytes, 0, file);
  while (const auto field = reader.next()) {
    if (!field->has_bytes) continue;
    if (field->number == 1) {
      bool is_unknown = false;
      model.pieces.push_back(read_piece(*field, file, is_unknown));
      if (is_unknown) unknown = static_cast<std::int32_t>(model.pieces.size()) - 1;
    } else if (field->number == 2) {
      require_fields(*field, file, "trainer_spec",
                     {{3, "model_type (1: unigram)", 1},
                      {24, "treat_whitespace_as_suffix", 0},
                      {35, "byte_fallback", 0}});
    } else if (field->number == 3) {
      require_fields(*field, file, "normalizer_spec",
                     {{3, "add_dummy_prefix", 1},
                      {4, "remove_extra_whitespaces", 1},
                      {5, "escape_whitespaces", 1}});
      MessageReader spec(field->bytes, field->at, file);
      while (const auto part = spec.next()) {
        if (part->number == 2 && part->has_bytes) model.charsmap = part->bytes;
      }
    }
  }
  if (model.pieces.empty()) throw Error(file + ": has no pieces, expected a SentencePiece model");
  if (!unknown) throw Error(file + ": has no piece for unknown text, expected one");
  model.unk_id = *unknown;
  return model;
}

std::string bytes_of_base64(std::string_view text, const std::string& what) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto refuse = [&] { throw Error(what + " is not base64"); };
  if (text.size() % 4 != 0) refuse();
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) refuse();
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return bytes;
}

}  // namespace petlab::trainer
