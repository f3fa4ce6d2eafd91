#include "protocol/artifact_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/shallow_json.h"
#include "base/shown.h"
#include "base/utf8.h"
#include "sweeps/catalog.h"

namespace petlab::protocol {
namespace {

static_assert(std::endian::native == std::endian::little, "artifacts are little-endian");

// As in PNG: reveals transfers in text mode, and stops terminals from printing the rest.
constexpr std::string_view kMagic("\x89PETL\r\n\x1a", 8);
constexpr std::size_t kAlignment = 8;
constexpr std::uint32_t kMostSections = 16;

/// The first bytes of the file.
struct Head {
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t sections = 0;
  std::uint64_t header_bytes = 0;
  std::uint32_t crc = 0;  // of the table and the header
  std::uint32_t zero = 0;
};
static_assert(sizeof(Head) == 32);

/// An entry of the section table.
struct TableEntry {
  std::uint32_t kind = 0;
  std::uint32_t crc = 0;  // of the section's bytes
  std::uint64_t offset = 0;
  std::uint64_t bits = 0;
};
static_assert(sizeof(TableEntry) == 24);

std::uint32_t crc_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::size_t aligned(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

std::uint64_t bytes_of(std::uint64_t bits) { return bits / 8 + (bits % 8 != 0 ? 1 : 0); }

[[noreturn]] void refuse(const std::string& name, const std::string& message) {
  throw base::Error(fmt::format("{}: {}", name, message));
}

template <typename Struct>
Struct read_struct(std::string_view bytes, std::size_t offset) {
  Struct result;
  std::memcpy(&result, bytes.data() + offset, sizeof(result));
  return result;
}

template <typename Struct>
void append_struct(const Struct& value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

bool all_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

/// Reads and checks the section of a table entry. `end` is the end of the previous section, and is
/// updated to the end of this one.
ArtifactSection read_section(std::string_view bytes, const TableEntry& entry, std::size_t& end,
                             const std::string& name) {
  ArtifactSection section;
  section.kind = static_cast<ArtifactSectionKind>(entry.kind);
  section.bits = entry.bits;
  const std::string_view kind = to_string(section.kind);
  if (kind.empty()) {
    refuse(name, fmt::format("section kind {} is not known, expected 1 to 4", entry.kind));
  }
  const std::size_t begin = aligned(end);
  if (entry.offset != begin) {
    refuse(name,
           fmt::format("section {} begins at byte {}, expected {}", kind, entry.offset, begin));
  }
  const std::uint64_t size = bytes_of(entry.bits);
  if (begin > bytes.size() || size > bytes.size() - begin) {
    refuse(name,
           fmt::format("is truncated or damaged: section {} of {} bits ends beyond the file of {} "
                       "bytes",
                       kind, entry.bits, bytes.size()));
  }
  section.bytes = bytes.substr(begin, size);
  if (!all_zero(bytes.substr(end, begin - end))) {
    refuse(name, fmt::format("is damaged: the bytes before section {} are not zero", kind));
  }
  if (crc_of(section.bytes) != entry.crc) {
    refuse(name, fmt::format("is damaged: the checksum of section {} is {:08x}, expected {:08x}",
                             kind, crc_of(section.bytes), entry.crc));
  }
  if (entry.bits % 8 != 0 &&
      (static_cast<unsigned char>(section.bytes.back()) >> (entry.bits % 8)) != 0) {
    refuse(name, fmt::format("is damaged: section {} has bits after its end", kind));
  }
  end = begin + size;
  return section;
}

/// Reads a whole number in 1..kMost.
std::int64_t size_field(const nlohmann::json& json, const char* field) {
  // Keeps all products in the formulas below 2^63: 32 · 4 · size · d_model · layers.
  constexpr std::int64_t kMost = 100'000;
  const auto found = json.find(field);
  if (found == json.end() || !found->is_number_integer() || found->get<double>() < 1 ||
      found->get<double>() > static_cast<double>(kMost)) {
    throw base::Error(fmt::format("module.{} is {}, must be a whole number in 1..{}", field,
                                  found == json.end() ? "missing" : found->dump(-1, ' ', true),
                                  kMost));
  }
  return found->get<std::int64_t>();
}

std::string text_field(const nlohmann::json& json, const char* field) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_string()) {
    throw base::Error(fmt::format("module.{} is {}, must be a string", field,
                                  found == json.end() ? "missing" : found->dump(-1, ' ', true)));
  }
  return found->get<std::string>();
}

}  // namespace

std::string_view to_string(ArtifactSectionKind kind) {
  switch (kind) {
    case ArtifactSectionKind::values:
      return "values";
    case ArtifactSectionKind::masks:
      return "masks";
    case ArtifactSectionKind::head:
      return "head";
    case ArtifactSectionKind::positions:
      return "positions";
  }
  return "";
}

const ArtifactSection* ArtifactContainer::find(ArtifactSectionKind kind) const {
  for (const ArtifactSection& section : sections) {
    if (section.kind == kind) return &section;
  }
  return nullptr;
}

std::uint64_t ArtifactContainer::bits(ArtifactSectionKind kind) const {
  const ArtifactSection* section = find(kind);
  return section == nullptr ? 0 : section->bits;
}

ArtifactContainer parse_artifact_container(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kMagic.substr(0, std::min(bytes.size(), kMagic.size())))) {
    refuse(name, "is not a petlab artifact: its first bytes differ");
  }
  if (bytes.size() < sizeof(Head)) {
    refuse(name, fmt::format("is truncated: found {} bytes, expected at least the first {}",
                             bytes.size(), sizeof(Head)));
  }
  const auto head = read_struct<Head>(bytes, 0);
  if (head.version > kArtifactVersion) {
    refuse(name, fmt::format("has format version {}, newer than {}: read it with the petlab that "
                             "wrote it, or a newer one",
                             head.version, kArtifactVersion));
  }
  if (head.version < kArtifactVersion) {
    refuse(name, fmt::format("has format version {}, older than {}, the first published one",
                             head.version, kArtifactVersion));
  }
  if (head.sections > kMostSections) {
    refuse(name, fmt::format("has {} sections according to its header, must have at most {}",
                             head.sections, kMostSections));
  }
  const std::size_t table_bytes = head.sections * sizeof(TableEntry);
  const std::size_t behind_head = bytes.size() - sizeof(Head);
  if (table_bytes > behind_head || head.header_bytes > behind_head - table_bytes) {
    refuse(name, fmt::format("is truncated or damaged: the header of {} bytes ends beyond the file "
                             "of {} bytes",
                             head.header_bytes, bytes.size()));
  }
  const std::string_view described = bytes.substr(sizeof(Head), table_bytes + head.header_bytes);
  if (crc_of(described) != head.crc || head.zero != 0) {
    refuse(name, fmt::format("is damaged: the header's checksum is {:08x}, expected {:08x}",
                             crc_of(described), head.crc));
  }
  ArtifactContainer container;
  container.version = head.version;
  container.header = described.substr(table_bytes);
  if (base::first_invalid_utf8(container.header)) {
    refuse(name, "its header is not UTF-8");
  }
  std::size_t end = sizeof(Head) + described.size();
  for (std::uint32_t i = 0; i < head.sections; ++i) {
    const auto entry = read_struct<TableEntry>(described, i * sizeof(TableEntry));
    ArtifactSection section = read_section(bytes, entry, end, name);
    if (container.find(section.kind) != nullptr) {
      refuse(name, fmt::format("is damaged: section {} occurs twice", to_string(section.kind)));
    }
    container.sections.push_back(section);
  }
  if (end != bytes.size()) {
    refuse(name, fmt::format("is damaged: {} bytes after the last section", bytes.size() - end));
  }
  return container;
}

ArtifactPieces make_artifact_pieces(const std::string& header,
                                    const std::vector<ArtifactSectionPieces>& sections) {
  static constexpr std::array<char, kAlignment> kZeros{};
  ArtifactPieces result;
  std::string table;
  std::size_t end = sizeof(Head) + sections.size() * sizeof(TableEntry) + header.size();
  for (const ArtifactSectionPieces& section : sections) {
    const std::size_t begin = aligned(end);
    result.rest.emplace_back(kZeros.data(), begin - end);
    end = begin;
    boost::crc_32_type crc;
    for (const std::string_view piece : section.pieces) {
      crc.process_bytes(piece.data(), piece.size());
      result.rest.push_back(piece);
      end += piece.size();
    }
    append_struct(
        TableEntry{static_cast<std::uint32_t>(section.kind), crc.checksum(), begin, section.bits},
        table);
  }
  Head head;
  std::copy(kMagic.begin(), kMagic.end(), head.magic.begin());
  head.version = kArtifactVersion;
  head.sections = static_cast<std::uint32_t>(sections.size());
  head.header_bytes = header.size();
  head.crc = crc_of(table + header);
  append_struct(head, result.beginning);
  result.beginning += table;
  result.beginning += header;
  return result;
}

std::string make_artifact_container(const std::string& header,
                                    const std::vector<ArtifactSection>& sections) {
  std::vector<ArtifactSectionPieces> given;
  for (const ArtifactSection& section : sections) {
    given.push_back({section.kind, section.bits, {section.bytes}});
  }
  const ArtifactPieces pieces = make_artifact_pieces(header, given);
  std::string bytes = pieces.beginning;
  for (const std::string_view piece : pieces.rest) bytes += piece;
  return bytes;
}

namespace {

// The key of a size other than the first: the last word of its field's name, such as "embedding" of
// module.hyper_embedding.
std::string key_of(const metrics::SizeName& size) {
  return size.field.substr(size.field.find_last_of("._") + 1);
}

}  // namespace

nlohmann::ordered_json to_json(const metrics::ModuleStorage& module) {
  nlohmann::ordered_json json = {{"family", module.formula->kind}, {"d_model", module.d_model}};
  if (module.attention_width != 0) json["attention_width"] = module.attention_width;
  json["layers"] = module.layers;
  json["size"] = module.size;
  json["share"] = module.share;
  json["mask"] = metrics::to_string(module.mask);
  json["sparsity_ratio"] = module.sparsity_ratio;
  json["tasks"] = module.tasks;
  for (std::size_t i = 0; i < module.other_sizes.size(); ++i) {
    json[key_of(module.formula->sizes[i + 1])] = module.other_sizes[i];
  }
  return json;
}

metrics::ModuleStorage module_storage_from_json(const nlohmann::json& json) {
  if (!json.is_object()) throw base::Error("module is not an object");
  metrics::ModuleStorage module;
  const std::string name = text_field(json, "family");
  std::vector<std::string_view> known;
  for (const sweeps::ModuleRow& row : sweeps::modules()) {
    if (row.formula() == nullptr || !row.catalog.empty()) continue;
    known.push_back(row.kind);
    if (row.kind == name) module.formula = row.formula();
  }
  if (module.formula == nullptr) {
    throw base::Error(fmt::format("module.family is {}, must be one of {}", base::in_quotes(name),
                                  fmt::join(known, ", ")));
  }
  module.d_model = size_field(json, "d_model");
  if (json.contains("attention_width")) {
    module.attention_width = size_field(json, "attention_width");
  }
  module.layers = size_field(json, "layers");
  module.size = size_field(json, "size");
  module.tasks = size_field(json, "tasks");
  const auto share = json.find("share");
  if (share == json.end() || !share->is_boolean()) {
    throw base::Error("module.share must be true or false");
  }
  module.share = share->get<bool>();
  const std::string mask = text_field(json, "mask");
  const auto kind = metrics::mask_kind_from(mask);
  if (!kind)
    throw base::Error(
        fmt::format("module.mask is {}, must be none, learned or random", base::in_quotes(mask)));
  module.mask = *kind;
  const auto ratio = json.find("sparsity_ratio");
  if (ratio == json.end() || !ratio->is_number() || !(ratio->get<double>() > 0) ||
      !(ratio->get<double>() <= 1)) {
    throw base::Error("module.sparsity_ratio must be a number in (0, 1]");
  }
  module.sparsity_ratio = ratio->get<double>();
  for (std::size_t i = 1; i < module.formula->sizes.size(); ++i) {
    module.other_sizes.push_back(size_field(json, key_of(module.formula->sizes[i]).c_str()));
  }
  if (module.formula->per_model && (module.share || module.mask != metrics::MaskKind::none)) {
    throw base::Error("module.share must be false and module.mask none in a hypernetwork");
  }
  if (module.mask != metrics::MaskKind::none && !module.share && module.tasks > 1) {
    throw base::Error("module.tasks must be 1 for a mask without a shared prototype");
  }
  return module;
}

ArtifactStorage artifact_storage(std::string_view bytes, const std::string& name) {
  const ArtifactContainer container = parse_artifact_container(bytes, name);
  ArtifactStorage storage;
  nlohmann::json header;
  try {
    header = base::parse_shallow_json(container.header, name + ": its header");
  } catch (const nlohmann::json::parse_error& error) {
    refuse(name, fmt::format("its header is not JSON: error at byte {}", error.byte));
  } catch (const nlohmann::json::exception& error) {
    refuse(name, fmt::format("its header is not JSON: {}", base::json_problem(error)));
  }
  try {
    storage.trial_id = header.at("trial").get<std::string>();
    storage.config = header.at("config").dump();
    if (header.contains("module")) storage.module = module_storage_from_json(header["module"]);
  } catch (const nlohmann::json::exception& error) {
    refuse(name, fmt::format("its header does not follow docs/reference/artifact.md: {}",
                             base::json_problem(error)));
  } catch (const base::Error& error) {
    refuse(name, fmt::format("its header: {}", error.what()));
  }
  if (storage.module) storage.bls_bits = metrics::bls_bits(*storage.module);
  storage.values_bits = container.bits(ArtifactSectionKind::values);
  storage.masks_bits = container.bits(ArtifactSectionKind::masks);
  storage.positions_bits = container.bits(ArtifactSectionKind::positions);
  storage.head_bits = container.bits(ArtifactSectionKind::head);
  storage.file_bytes = bytes.size();
  return storage;
}

ArtifactStorage read_artifact_storage(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(file.string(), fmt::format("cannot open: {}", std::strerror(errno)));
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  if (stream.bad()) refuse(file.string(), "cannot read");
  return artifact_storage(bytes, file.string());
}

}  // namespace petlab::protocol
