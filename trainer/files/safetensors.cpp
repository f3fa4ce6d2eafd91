#include "trainer/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/shallow_json.h"
#include "base/shown.h"
#include "sweeps/error.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

// The limit of the reference reader.
constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::uint64_t kLengthBytes = 8;

struct Range {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Throws the message, preceded by the file and, if there is one, the tensor.
[[noreturn]] void refuse(const std::string& file, std::string_view tensor,
                         const std::string& message) {
  if (tensor.empty()) throw Error(fmt::format("{}: {}", file, message));
  throw Error(fmt::format("{}: tensor {}: {}", file, tensor, message));
}

/// A JSON value, shortened for a message.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

Json parse_header(std::string_view text, const std::string& file) {
  Json header;
  try {
    header = base::parse_shallow_json(text, file + ": the safetensors header");
  } catch (const Json::exception& error) {
    refuse(file, "",
           fmt::format("the safetensors header is not UTF-8 JSON: {}", base::json_problem(error)));
  } catch (const sweeps::Error& error) {
    throw Error(error.what());
  }
  if (!header.is_object()) {
    refuse(
        file, "",
        fmt::format("the safetensors header is a JSON {}, expected an object", header.type_name()));
  }
  return header;
}

const Json& field(const Json& entry, const char* name, const std::string& file,
                  const std::string& tensor) {
  const auto found = entry.find(name);
  if (found == entry.end()) refuse(file, tensor, fmt::format("has no {}", name));
  return *found;
}

std::vector<std::int64_t> read_shape(const Json& value, const std::string& file,
                                     const std::string& tensor) {
  if (!value.is_array()) refuse(file, tensor, fmt::format("shape {} is not a list", shown(value)));
  std::vector<std::int64_t> shape;
  for (const Json& size : value) {
    if (!size.is_number_unsigned() ||
        size.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
      refuse(file, tensor,
             fmt::format("shape {} contains {}, expected whole numbers from 0", shown(value),
                         shown(size)));
    }
    shape.push_back(size.get<std::int64_t>());
  }
  return shape;
}

std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, DType dtype, const std::string& file,
                       const std::string& tensor) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      refuse(file, tensor,
             fmt::format("shape {} of {} has more bytes than 64 bits can count", shape_text(shape),
                         to_string(dtype)));
    }
  }
  return static_cast<std::uint64_t>(bytes);
}

/// Checks an entry of the header, including its range in the data.
TensorView read_entry(const Json& entry, const std::string& file, const std::string& tensor,
                      std::span<const std::byte> data, Range& range) {
  if (!entry.is_object()) {
    refuse(file, tensor, fmt::format("its entry is {}, expected an object", shown(entry)));
  }
  const Json& dtype_json = field(entry, "dtype", file, tensor);
  const auto dtype =
      dtype_json.is_string() ? dtype_from(dtype_json.get_ref<const std::string&>()) : std::nullopt;
  if (!dtype) {
    refuse(
        file, tensor,
        fmt::format("dtype {} is not known, expected one of BOOL, U8, I8, U16, I16, U32, I32, U64, "
                    "I64, F16, BF16, F32, F64",
                    dtype_json.is_string() ? dtype_json.get<std::string>() : shown(dtype_json)));
  }
  TensorView view;
  view.dtype = *dtype;
  view.shape = read_shape(field(entry, "shape", file, tensor), file, tensor);
  const std::uint64_t wanted = bytes_of(view.shape, *dtype, file, tensor);

  const Json& offsets = field(entry, "data_offsets", file, tensor);
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    refuse(file, tensor,
           fmt::format("data_offsets are {}, expected two whole numbers from 0", shown(offsets)));
  }
  range = {tensor, offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
  if (range.end < range.begin) {
    refuse(file, tensor,
           fmt::format("its data end at byte {}, before they begin at {}", range.end, range.begin));
  }
  if (range.end - range.begin != wanted) {
    refuse(file, tensor,
           fmt::format("data_offsets span {} bytes, {} of {} needs {}", range.end - range.begin,
                       shape_text(view.shape), to_string(*dtype), wanted));
  }
  if (range.end > data.size()) {
    refuse(file, tensor,
           fmt::format("its data end at byte {}, beyond the file, which holds {} bytes of data",
                       range.end, data.size()));
  }
  view.bytes = data.subspan(range.begin, wanted);
  return view;
}

std::map<std::string, std::string> read_metadata(const Json& value, const std::string& file) {
  if (!value.is_object()) {
    refuse(file, "", fmt::format("__metadata__ is {}, expected an object", shown(value)));
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      refuse(file, "",
             fmt::format("__metadata__ field {} is {}, expected a string", key, shown(text)));
    }
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

/// Checks that every byte of the data belongs to exactly one tensor.
void check_coverage(std::vector<Range>& ranges, std::uint64_t data_size, const std::string& file) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const Range& range : ranges) {
    if (range.begin < covered) {
      refuse(file, range.name,
             fmt::format("its data begin at byte {}, inside another tensor's, which end at {}",
                         range.begin, covered));
    }
    if (range.begin > covered) {
      refuse(file, range.name,
             fmt::format("its data begin at byte {}, so the {} bytes before belong to no tensor",
                         range.begin, range.begin - covered));
    }
    covered = range.end;
  }
  if (covered != data_size) {
    refuse(file, "",
           fmt::format("{} bytes after the last tensor belong to none", data_size - covered));
  }
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& file) {
  return parse(FileBytes::map(file));
}

SafetensorsFile SafetensorsFile::parse(std::shared_ptr<const FileBytes> file) {
  SafetensorsFile result;
  result.file_ = std::move(file);
  const std::string& name = result.file_->name();
  const auto bytes = result.file_->bytes();
  if (bytes.size() < kLengthBytes) {
    refuse(name, "",
           fmt::format("is {} bytes long, a safetensors file begins with a header length of 8",
                       bytes.size()));
  }
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), kLengthBytes);
  if (header_size > bytes.size() - kLengthBytes) {
    refuse(name, "",
           fmt::format("the safetensors header has {} bytes according to its length field, more "
                       "than the file's {} bytes",
                       header_size, bytes.size()));
  }
  if (header_size > kMaxHeader) {
    refuse(name, "",
           fmt::format("the safetensors header has {} bytes according to its length field, must "
                       "have at most {}",
                       header_size, kMaxHeader));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                              header_size);
  const Json header = parse_header(text, name);
  const auto data = bytes.subspan(kLengthBytes + header_size);
  std::vector<Range> ranges;
  for (const auto& [tensor, entry] : header.items()) {
    if (tensor == "__metadata__") {
      result.metadata_ = read_metadata(entry, name);
      continue;
    }
    TensorView view = read_entry(entry, name, tensor, data, ranges.emplace_back());
    view.owner = result.file_;
    view.mapped = result.file_->is_mapped();
    result.tensors_.emplace(tensor, std::move(view));
  }
  check_coverage(ranges, data.size(), name);
  for (const Range& range : ranges) result.names_.push_back(range.name);
  return result;
}

const TensorView& SafetensorsFile::tensor(std::string_view tensor) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end()) {
    throw Error(fmt::format("{}: has no tensor {}", file_->name(), tensor));
  }
  return found->second;
}

void write_safetensors(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, TensorView>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  std::vector<std::span<const std::byte>> parts(1);
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || name == "__metadata__" || header.contains(name)) {
      throw std::invalid_argument(fmt::format("{}: tensor name {} is empty, reserved or used twice",
                                              file.string(), base::in_quotes(name)));
    }
    const auto wanted = static_cast<std::uint64_t>(elements(tensor.shape)) * size_of(tensor.dtype);
    if (tensor.bytes.size() != wanted) {
      throw std::invalid_argument(fmt::format(
          "{}: tensor {}: {} bytes are given, {} of {} needs {}", file.string(), name,
          tensor.bytes.size(), shape_text(tensor.shape), to_string(tensor.dtype), wanted));
    }
    header[name] = {{"dtype", to_string(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + wanted}}};
    offset += wanted;
    parts.push_back(tensor.bytes);
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const std::uint64_t header_size = text.size();
  std::string head(kLengthBytes, '\0');
  std::memcpy(head.data(), &header_size, kLengthBytes);
  head += text;
  parts[0] = std::as_bytes(std::span(head));
  write_file_atomically(file, parts);
}

}  // namespace petlab::trainer
