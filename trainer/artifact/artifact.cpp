#include "trainer/artifact/artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "sweeps/artifact_format.h"
#include "sweeps/shallow_json.h"
#include "trainer/backbones/file_bytes.h"
#include "trainer/backbones/tensor_view.h"
#include "trainer/error.h"
#include "trainer/modules/mask_selection.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;
using sweeps::ArtifactSection;
using sweeps::ArtifactSectionKind;
using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kValueBits = 32;

std::int64_t count_kept(const std::vector<std::uint8_t>& mask) {
  return std::count_if(mask.begin(), mask.end(), [](std::uint8_t bit) { return bit != 0; });
}

/// Bits one after the other, without gaps between tensors.
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

/// The sections' content while an artifact is written.
struct Sections {
  std::string values, head;
  BitWriter masks, positions;
};

void append_floats(std::span<const float> values, std::string& bytes) {
  // An empty tensor has no address.
  if (!values.empty()) {
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
}

/// Checks what the caller gave for a tensor.
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
    throw std::invalid_argument(fmt::format("tensor {} is there twice", name));
  }
}

nlohmann::ordered_json tensor_entry(const std::string& name, const char* section,
                                    const Shape& shape) {
  return {{"name", name}, {"section", section}, {"shape", shape}};
}

/// Takes tensors off a section, one after the other.
class SectionReader {
 public:
  SectionReader(const sweeps::ArtifactContainer& container, ArtifactSectionKind kind)
      : kind_(kind) {
    if (const ArtifactSection* section = container.find(kind)) section_ = *section;
  }

  std::vector<float> floats(std::uint64_t n) {
    const std::uint64_t begin = take(n, kValueBits);
    std::vector<float> values(n);
    if (n > 0) std::memcpy(values.data(), section_.bytes.data() + begin / 8, n * sizeof(float));
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
  ArtifactSection section_;
  std::uint64_t used_ = 0;
};

Shape read_shape(const Json& json) {
  Shape shape;
  std::int64_t n = 1;
  for (const Json& size : json) {
    if (!size.is_number_integer() || size.get<double>() < 0 || size.get<double>() > 1e15 ||
        __builtin_mul_overflow(n, size.get<std::int64_t>(), &n)) {
      throw Error(fmt::format("shape {} is impossible", json.dump(-1, ' ', true).substr(0, 80)));
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
    throw Error(fmt::format("tensor {}: {} positions are kept, wanted {}", tensor.name,
                            count_kept(tensor.kept), kept));
  }
  const std::vector<float> stored = values.floats(static_cast<std::uint64_t>(kept));
  tensor.values.resize(n);
  for (std::size_t i = 0, next = 0; i < n; ++i) {
    if (tensor.kept[i] != 0) tensor.values[i] = stored[next++];
  }
  return tensor;
}

Artifact read_parts(const sweeps::ArtifactContainer& container) {
  const auto header = sweeps::parse_shallow_ordered_json(container.header, "its header");
  Artifact artifact;
  artifact.trial_id = header.at("trial").get<std::string>();
  artifact.config = header.at("config").dump();
  artifact.backbone_digest = header.at("backbone_digest").get<std::string>();
  artifact.numerics = header.at("numerics").get<std::string>();
  artifact.step = header.at("step").get<std::int64_t>();
  if (header.contains("module")) {
    artifact.module = sweeps::module_storage_from_json(Json(header["module"]));
  }
  artifact.labels = header.at("labels").get<std::map<std::string, std::vector<std::string>>>();
  SectionReader values(container, ArtifactSectionKind::values);
  SectionReader masks(container, ArtifactSectionKind::masks);
  SectionReader head(container, ArtifactSectionKind::head);
  SectionReader positions(container, ArtifactSectionKind::positions);
  std::set<std::string> names;
  for (const Json entry : header.at("tensors")) {
    std::string name = entry.at("name").get<std::string>();
    const std::string section = entry.at("section").get<std::string>();
    Shape shape = read_shape(entry.at("shape"));
    const auto n = static_cast<std::uint64_t>(elements(shape));
    if (!names.insert(name).second) throw Error(fmt::format("tensor {} is there twice", name));
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
      throw Error(fmt::format("tensor {}: section '{}' is not known, wanted values, masks or head",
                              name, section));
    }
  }
  for (const SectionReader* reader : {&values, &masks, &head, &positions}) reader->finish();
  if (artifact.module && stored_bits(artifact) != metrics::stored_bits(*artifact.module)) {
    throw Error(fmt::format("values and masks are {} bits, its module's formula gives {}",
                            stored_bits(artifact), metrics::stored_bits(*artifact.module)));
  }
  return artifact;
}

}  // namespace

std::int64_t stored_bits(const Artifact& artifact) {
  std::int64_t bits = 0;
  for (const auto& tensor : artifact.values) bits += kValueBits * std::ssize(tensor.values);
  for (const auto& tensor : artifact.sparse) bits += kValueBits * count_kept(tensor.kept);
  for (const auto& mask : artifact.masks) bits += std::ssize(mask.mask);
  return bits;
}

std::string artifact_bytes(const Artifact& artifact) {
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
  if (artifact.module) header["module"] = sweeps::to_json(*artifact.module);
  header["labels"] = artifact.labels;
  auto tensors = nlohmann::ordered_json::array();
  Sections sections;
  std::set<std::string> names;
  for (const ArtifactTensor& tensor : artifact.values) {
    check_tensor(tensor.name, tensor.shape, tensor.values.size(), names);
    tensors.push_back(tensor_entry(tensor.name, "values", tensor.shape));
    append_floats(tensor.values, sections.values);
  }
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
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      if (tensor.kept[i] != 0) append_floats({&tensor.values[i], 1}, sections.values);
    }
    sections.positions.append(tensor.kept);
  }
  for (const ArtifactMask& mask : artifact.masks) {
    check_tensor(mask.name, mask.shape, mask.mask.size(), names);
    tensors.push_back(tensor_entry(mask.name, "masks", mask.shape));
    sections.masks.append(mask.mask);
  }
  for (const ArtifactTensor& tensor : artifact.head) {
    check_tensor(tensor.name, tensor.shape, tensor.values.size(), names);
    tensors.push_back(tensor_entry(tensor.name, "head", tensor.shape));
    append_floats(tensor.values, sections.head);
  }
  header["tensors"] = std::move(tensors);

  const std::string masks = sections.masks.packed();
  const std::string positions = sections.positions.packed();
  std::vector<ArtifactSection> parts;
  const auto add = [&](ArtifactSectionKind kind, std::uint64_t bits, const std::string& bytes) {
    if (bits > 0) parts.push_back({kind, bits, bytes});
  };
  add(ArtifactSectionKind::values, sections.values.size() * 8, sections.values);
  add(ArtifactSectionKind::masks, sections.masks.size(), masks);
  add(ArtifactSectionKind::head, sections.head.size() * 8, sections.head);
  add(ArtifactSectionKind::positions, sections.positions.size(), positions);
  return sweeps::make_artifact_container(header.dump(), parts);
}

void write_artifact(const std::filesystem::path& file, const Artifact& artifact) {
  const std::string bytes = artifact_bytes(artifact);
  const std::span<const std::byte> part = std::as_bytes(std::span(bytes));
  write_file_atomically(file, {&part, 1});
}

Artifact parse_artifact(std::string_view bytes, const std::string& name) {
  const sweeps::ArtifactContainer container = sweeps::parse_artifact_container(bytes, name);
  try {
    return read_parts(container);
  } catch (const nlohmann::json::exception& error) {
    throw Error(
        fmt::format("{}: its header is not as docs/artifact.md says: {}", name, error.what()));
  } catch (const std::runtime_error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
}

Artifact read_artifact(const std::filesystem::path& file) {
  const auto mapped = FileBytes::map(file);
  const auto bytes = mapped->bytes();
  return parse_artifact({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                        mapped->name());
}

}  // namespace petlab::trainer
