#include "trainer/files/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

// Signatures and sizes of the required records in PKWARE's APPNOTE.TXT.
constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kEnd64Locator = 0x07064b50;
constexpr std::size_t kLocalSize = 30;
constexpr std::size_t kCentralSize = 46;
constexpr std::size_t kEndSize = 22;
constexpr std::size_t kEnd64Size = 56;
constexpr std::size_t kLocatorSize = 20;
constexpr std::size_t kLongestComment = 0xffff;
constexpr std::uint32_t kIn64 = 0xffffffff;
constexpr std::uint16_t kExtra64 = 0x0001;

/// Reads little-endian numbers with bounds checks.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  template <typename Number>
  Number at(std::uint64_t offset) const {
    need(offset, sizeof(Number));
    Number number;
    std::memcpy(&number, bytes_.data() + offset, sizeof(number));
    return number;
  }

  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    need(offset, size);
    return bytes_.subspan(offset, size);
  }

  std::string text(std::uint64_t offset, std::uint64_t size) const {
    const auto bytes = part(offset, size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::uint64_t size() const { return bytes_.size(); }

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(fmt::format("{}: {}", file_, message));
  }

 private:
  void need(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      refuse(
          fmt::format("the zip archive is truncated or damaged: {} bytes at {} are beyond the "
                      "file of {} bytes",
                      size, offset, bytes_.size()));
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
};

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t offset = 0;
};

Directory find_directory(const Reader& reader) {
  const std::uint64_t size = reader.size();
  std::optional<std::uint64_t> end;
  if (size >= kEndSize) {
    const std::uint64_t lowest = size - std::min<std::uint64_t>(size, kEndSize + kLongestComment);
    for (std::uint64_t at = size - kEndSize + 1; at-- > lowest;) {
      if (reader.at<std::uint32_t>(at) == kEnd &&
          reader.at<std::uint16_t>(at + 20) == size - at - kEndSize) {
        end = at;
        break;
      }
    }
  }
  if (!end) reader.refuse("the zip archive is truncated: its directory is missing");
  Directory directory{reader.at<std::uint16_t>(*end + 10), reader.at<std::uint32_t>(*end + 16)};
  if (*end >= kLocatorSize && reader.at<std::uint32_t>(*end - kLocatorSize) == kEnd64Locator) {
    const auto end64 = reader.at<std::uint64_t>(*end - kLocatorSize + 8);
    reader.part(end64, kEnd64Size);
    if (reader.at<std::uint32_t>(end64) != kEnd64) {
      reader.refuse("the zip archive is damaged: the ZIP64 directory is not at its recorded place");
    }
    directory = {reader.at<std::uint64_t>(end64 + 32), reader.at<std::uint64_t>(end64 + 48)};
  }
  return directory;
}

/// Sizes and offset of an entry. Those that exceed 32 bits are in an extra field.
struct Place {
  std::uint64_t packed = 0, unpacked = 0, offset = 0;
};

Place read_place(const Reader& reader, std::uint64_t at, std::uint64_t extra,
                 std::uint64_t extra_size) {
  Place place{reader.at<std::uint32_t>(at + 20), reader.at<std::uint32_t>(at + 24),
              reader.at<std::uint32_t>(at + 42)};
  const std::uint64_t end = extra + extra_size;
  for (std::uint64_t field = extra; field + 4 <= end;) {
    const auto id = reader.at<std::uint16_t>(field);
    const std::uint64_t field_end = field + 4 + reader.at<std::uint16_t>(field + 2);
    if (id == kExtra64) {
      std::uint64_t next = field + 4;
      for (std::uint64_t* number : {&place.unpacked, &place.packed, &place.offset}) {
        if (*number != kIn64) continue;
        if (next + 8 > std::min(field_end, end)) {
          reader.refuse("the zip archive is damaged: a ZIP64 field is too short");
        }
        *number = reader.at<std::uint64_t>(next);
        next += 8;
      }
    }
    field = field_end;
  }
  return place;
}

}  // namespace

bool looks_like_zip(std::span<const std::byte> bytes) {
  std::uint32_t signature = 0;
  if (bytes.size() < sizeof(signature)) return false;
  std::memcpy(&signature, bytes.data(), sizeof(signature));
  return signature == kLocalHeader || signature == kEnd;
}

std::map<std::string, std::span<const std::byte>, std::less<>> read_zip(
    std::span<const std::byte> bytes, const std::string& file) {
  const Reader reader(bytes, file);
  const Directory directory = find_directory(reader);
  std::map<std::string, std::span<const std::byte>, std::less<>> entries;
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (reader.at<std::uint32_t>(at) != kCentralHeader) {
      reader.refuse(
          fmt::format("the zip archive is damaged: entry {} of its directory is invalid", i));
    }
    reader.part(at, kCentralSize);
    const std::uint64_t name_size = reader.at<std::uint16_t>(at + 28);
    const std::uint64_t extra_size = reader.at<std::uint16_t>(at + 30);
    const std::uint64_t comment_size = reader.at<std::uint16_t>(at + 32);
    const std::string name = reader.text(at + kCentralSize, name_size);
    const Place place = read_place(reader, at, at + kCentralSize + name_size, extra_size);
    if ((reader.at<std::uint16_t>(at + 8) & 1u) != 0) {
      reader.refuse(fmt::format("the zip entry {} is encrypted, expected a stored one", name));
    }
    if (reader.at<std::uint16_t>(at + 10) != 0 || place.packed != place.unpacked) {
      reader.refuse(
          fmt::format("the zip entry {} is compressed, expected a stored one, as torch "
                      "writes it",
                      name));
    }
    if (reader.at<std::uint32_t>(place.offset) != kLocalHeader) {
      reader.refuse(fmt::format("the zip archive is damaged: entry {} is not at byte {}", name,
                                place.offset));
    }
    const std::uint64_t data = place.offset + kLocalSize +
                               reader.at<std::uint16_t>(place.offset + 26) +
                               reader.at<std::uint16_t>(place.offset + 28);
    if (!entries.emplace(name, reader.part(data, place.packed)).second) {
      reader.refuse(fmt::format("the zip entry {} occurs twice", name));
    }
    at += kCentralSize + name_size + extra_size + comment_size;
  }
  return entries;
}

}  // namespace petlab::trainer
