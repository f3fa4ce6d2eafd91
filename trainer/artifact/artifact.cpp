#include "trainer/artifact/artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/shallow_json.h"
#include "protocol/artifact_format.h"
#include "trainer/files/error.h"
#include "trainer/files/file_bytes.h"
#include "trainer/files/tensor_view.h"
#include "trainer/modules/mask_selection.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;
using protocol::ArtifactSection;
using protocol::ArtifactSectionKind;
using Shape = std::vector<std::int64_t>;

constexpr std::uint64_t kValueBits = 32;

std::int64_t count_kept(const std::vector<std::uint8_t>& mask) {
  return std::count_if(mask.begin(), mask.end(), [](std::uint8_t bit) { return bit != 0; });
}

/// Packs bits without gaps between tensors.
class BitWriter {
 public:
  void append(const std::vector<std::uint8_t>& mask) {
    bits_.insert(bits_.end(), mask.begin(), mask.end());
  }
  std::uint64_t size() const { return bits_.size(); }
  std::string packed() const {
    const auto bytes = pack_bits(bits_);
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::vector<std::uint8_t> bits_;
};

std::string_view bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// Refers to the numbers of a section in place.
class FloatPieces {
 public:
  void append(std::span<const float> values) {
    // An empty tensor has no address.
    if (values.empty()) return;
    pieces_.push_back(bytes_of(values));
    bits_ += kValueBits * values.size();
  }
  std::uint64_t bits() const { return bits_; }
  const std::vector<std::string_view>& pieces() const { return pieces_; }

 private:
  std::vector<std::string_view> pieces_;
  std::uint64_t bits_ = 0;
};

/// An artifact's file as a list of pieces. Those of dense numbers refer to the artifact's memory.
class FilePieces {
 public:
  explicit FilePieces(const Artifact& artifact);
  FilePieces(const FilePieces&) = delete;
  FilePieces& operator=(const FilePieces&) = delete;
  /// Calls take(piece) for each piece, in order.
  template <typename Take>
  void each(Take take) const {
    take(std::string_view(container_.beginning));
    for (const std::string_view piece : container_.rest) take(piece);
  }

 private:
  std::vector<std::vector<float>> kept_;  // the kept values of pruned tensors
  std::string masks_, positions_;
  protocol::ArtifactPieces container_;
};

/// Checks a tensor's name and size as passed by the caller.
void check_tensor(const std::string& name, const Shape& shape, std::size_t found,
                  std::set<std::string>& names) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(n, size, &n)) {
      throw std::invalid_argument(
          fmt::format("tensor {}: shape {} is impossible", name, shape_text(shape)));
    }
  }
  if (static_cast<std::size_t>(n) != found) {
    throw std::invalid_argument(fmt::format("tensor {}: {} elements are given, {} has {}", name,
                                            found, shape_text(shape), n));
  }
  if (!names.insert(name).second) {
    throw std::invalid_argument(fmt::format("tensor {} occurs twice", name));
  }
}

nlohmann::ordered_json tensor_entry(const std::string& name, const char* section,
                                    const Shape& shape) {
  return {{"name", name}, {"section", section}, {"shape", shape}};
}

/// Reads the tensors of a section in order.
class SectionReader {
 public:
  /// `owner` keeps the container's bytes alive; without it, they are copied.
  SectionReader(const protocol::ArtifactContainer& container, ArtifactSectionKind kind,
                std::shared_ptr<const void> owner)
      : kind_(kind), owner_(std::move(owner)) {
    if (const ArtifactSection* section = container.find(kind)) section_ = *section;
  }

  SharedFloats floats(std::uint64_t n) {
    const std::uint64_t begin = take(n, kValueBits);
    if (n == 0) return {};
    const char* const at = section_.bytes.data() + begin / 8;
    if (owner_ != nullptr && reinterpret_cast<std::uintptr_t>(at) % alignof(float) == 0) {
      return {std::span(reinterpret_cast<const float*>(at), n), owner_};
    }
    std::vector<float> values(n);
    std::memcpy(values.data(), at, n * sizeof(float));
    return values;
  }

  std::vector<std::uint8_t> bits(std::uint64_t n) {
    const std::uint64_t begin = take(n, 1);
    std::vector<std::uint8_t> mask(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t bit = begin + i;
      const auto byte = static_cast<unsigned char>(section_.bytes[bit / 8]);
      mask[i] = static_cast<std::uint8_t>((byte >> (bit % 8)) & 1u);
    }
    return mask;
  }

  void finish() const {
    if (used_ != section_.bits) {
      throw Error(fmt::format("section {} holds {} bits, its tensors take {}", to_string(kind_),
                              section_.bits, used_));
    }
  }

 private:
  std::uint64_t take(std::uint64_t n, std::uint64_t bits) {
    if (n > (section_.bits - used_) / bits) {
      throw Error(fmt::format("section {} of {} bits ends inside its tensors", to_string(kind_),
                              section_.bits));
    }
    return std::exchange(used_, used_ + n * bits);
  }

  ArtifactSectionKind kind_;
  std::shared_ptr<const void> owner_;
  ArtifactSection section_;
  std::uint64_t used_ = 0;
};

Shape read_shape(const Json& sizes) {
  Shape shape;
  std::int64_t n = 1;
  for (const Json& size : sizes) {
    if (!size.is_number_integer() || size.get<double>() < 0 || size.get<double>() > 1e15 ||
        __builtin_mul_overflow(n, size.get<std::int64_t>(), &n)) {
      throw Error(fmt::format("shape {} is impossible", sizes.dump(-1, ' ', true).substr(0, 80)));
    }
    shape.push_back(size.get<std::int64_t>());
  }
  return shape;
}

ArtifactSparse read_sparse(std::string name, Shape shape, std::int64_t kept, SectionReader& values,
                           SectionReader& positions) {
  ArtifactSparse tensor{std::move(name), std::move(shape), {}, {}};
  const auto n = static_cast<std::uint64_t>(elements(tensor.shape));
  tensor.kept = positions.bits(n);
  if (count_kept(tensor.kept) != kept) {
    throw Error(fmt::format("tensor {}: {} positions are kept, expected {}", tensor.name,
                            count_kept(tensor.kept), kept));
  }
  const SharedFloats stored = values.floats(static_cast<std::uint64_t>(kept));
  tensor.values.resize(n);
  for (std::size_t i = 0, next = 0; i < n; ++i) {
    if (tensor.kept[i] != 0) tensor.values[i] = stored[next++];
  }
  return tensor;
}

Artifact read_parts(const protocol::ArtifactContainer& container,
                    const std::shared_ptr<const void>& owner) {
  const auto header = base::parse_shallow_ordered_json(container.header, "its header");
  Artifact artifact;
  artifact.trial_id = header.at("trial").get<std::string>();
  artifact.config = header.at("config").dump();
  artifact.backbone_digest = header.at("backbone_digest").get<std::string>();
  artifact.numerics = header.at("numerics").get<std::string>();
  artifact.step = header.at("step").get<std::int64_t>();
  if (header.contains("module")) {
    artifact.module = protocol::module_storage_from_json(Json(header["module"]));
  }
  artifact.labels = header.at("labels").get<std::map<std::string, std::vector<std::string>>>();
  SectionReader values(container, ArtifactSectionKind::values, owner);
  SectionReader masks(container, ArtifactSectionKind::masks, owner);
  SectionReader head(container, ArtifactSectionKind::head, owner);
  SectionReader positions(container, ArtifactSectionKind::positions, owner);
  std::set<std::string> names;
  for (const Json entry : header.at("tensors")) {
    std::string name = entry.at("name").get<std::string>();
    const std::string section = entry.at("section").get<std::string>();
    Shape shape = read_shape(entry.at("shape"));
    const auto n = static_cast<std::uint64_t>(elements(shape));
    if (!names.insert(name).second) throw Error(fmt::format("tensor {} occurs twice", name));
    if (section == "values" && entry.contains("kept")) {
      artifact.sparse.push_back(read_sparse(std::move(name), std::move(shape),
                                            entry["kept"].get<std::int64_t>(), values, positions));
    } else if (section == "values") {
      artifact.values.push_back({std::move(name), std::move(shape), values.floats(n)});
    } else if (section == "masks") {
      artifact.masks.push_back({std::move(name), std::move(shape), masks.bits(n)});
    } else if (section == "head") {
      artifact.head.push_back({std::move(name), std::move(shape), head.floats(n)});
    } else {
      throw Error(fmt::format(
          "tensor {}: section '{}' is not known, expected values, masks or head", name, section));
    }
  }
  for (const SectionReader* reader : {&values, &masks, &head, &positions}) reader->finish();
  if (artifact.module && stored_bits(artifact) != metrics::stored_bits(*artifact.module)) {
    throw Error(fmt::format("values and masks are {} bits, its module's formula gives {}",
                            stored_bits(artifact), metrics::stored_bits(*artifact.module)));
  }
  return artifact;
}

Artifact parse(std::string_view bytes, const std::string& name,
               const std::shared_ptr<const void>& owner) {
  const protocol::ArtifactContainer container = protocol::parse_artifact_container(bytes, name);
  try {
    return read_parts(container, owner);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: its header does not follow docs/reference/artifact.md: {}", name,
                            error.what()));
  } catch (const std::runtime_error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
}

FilePieces::FilePieces(const Artifact& artifact) {
  if (artifact.module) {
    const std::int64_t wanted = metrics::stored_bits(*artifact.module);
    if (stored_bits(artifact) != wanted) {
      throw std::invalid_argument(
          fmt::format("values and masks are {} bits, the formula of the module gives {}",
                      stored_bits(artifact), wanted));
    }
  }
  nlohmann::ordered_json header{{"trial", artifact.trial_id},
                                {"config", nlohmann::ordered_json::parse(artifact.config)},
                                {"backbone_digest", artifact.backbone_digest},
                                {"numerics", artifact.numerics},
                                {"step", artifact.step}};
  if (artifact.module) header["module"] = protocol::to_json(*artifact.module);
  header["labels"] = artifact.labels;
  auto tensors = nlohmann::ordered_json::array();
  FloatPieces values, head;
  BitWriter masks, positions;
  std::set<std::string> names;
  for (const ArtifactTensor& tensor : artifact.values) {
    check_tensor(tensor.name, tensor.shape, tensor.values.size(), names);
    tensors.push_back(tensor_entry(tensor.name, "values", tensor.shape));
    values.append(tensor.values.span());
  }
  kept_.reserve(artifact.sparse.size());
  for (const ArtifactSparse& tensor : artifact.sparse) {
    check_tensor(tensor.name, tensor.shape, tensor.values.size(), names);
    if (tensor.kept.size() != tensor.values.size()) {
      throw std::invalid_argument(fmt::format("tensor {}: {} positions are given for {} values",
                                              tensor.name, tensor.kept.size(),
                                              tensor.values.size()));
    }
    auto entry = tensor_entry(tensor.name, "values", tensor.shape);
    entry["kept"] = count_kept(tensor.kept);
    tensors.push_back(std::move(entry));
    std::vector<float>& kept = kept_.emplace_back();
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      if (tensor.kept[i] != 0) kept.push_back(tensor.values[i]);
    }
    values.append(kept);
    positions.append(tensor.kept);
  }
  for (const ArtifactMask& mask : artifact.masks) {
    check_tensor(mask.name, mask.shape, mask.mask.size(), names);
    tensors.push_back(tensor_entry(mask.name, "masks", mask.shape));
    masks.append(mask.mask);
  }
  for (const ArtifactTensor& tensor : artifact.head) {
    check_tensor(tensor.name, tensor.shape, tensor.values.size(), names);
    tensors.push_back(tensor_entry(tensor.name, "head", tensor.shape));
    head.append(tensor.values.span());
  }
  header["tensors"] = std::move(tensors);

  masks_ = masks.packed();
  positions_ = positions.packed();
  std::vector<protocol::ArtifactSectionPieces> sections;
  const auto add = [&](ArtifactSectionKind kind, std::uint64_t bits,
                       std::vector<std::string_view> pieces) {
    if (bits > 0) sections.push_back({kind, bits, std::move(pieces)});
  };
  add(ArtifactSectionKind::values, values.bits(), values.pieces());
  add(ArtifactSectionKind::masks, masks.size(), {masks_});
  add(ArtifactSectionKind::head, head.bits(), head.pieces());
  add(ArtifactSectionKind::positions, positions.size(), {positions_});
  container_ = protocol::make_artifact_pieces(header.dump(), sections);
}

}  // namespace

std::int64_t stored_bits(const Artifact& artifact) {
  std::uint64_t bits = 0;
  for (const auto& tensor : artifact.values) bits += kValueBits * tensor.values.size();
  for (const auto& tensor : artifact.sparse) {
    bits += kValueBits * static_cast<std::uint64_t>(count_kept(tensor.kept));
  }
  for (const auto& mask : artifact.masks) bits += mask.mask.size();
  return static_cast<std::int64_t>(bits);
}

std::string artifact_bytes(const Artifact& artifact) {
  std::string bytes;
  FilePieces(artifact).each([&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void write_artifact(const std::filesystem::path& file, const Artifact& artifact) {
  const FilePieces pieces(artifact);
  std::vector<std::span<const std::byte>> parts;
  pieces.each([&](std::string_view piece) { parts.push_back(std::as_bytes(std::span(piece))); });
  write_file_atomically(file, parts);
}

Artifact parse_artifact(std::string_view bytes, const std::string& name) {
  return parse(bytes, name, nullptr);
}

Artifact read_artifact(const std::filesystem::path& file) {
  const auto mapped = FileBytes::map(file);
  const auto bytes = mapped->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, mapped->name(), mapped);
}

}  // namespace petlab::trainer
