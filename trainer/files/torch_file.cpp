#include "trainer/files/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "trainer/files/error.h"
#include "trainer/files/pickle.h"
#include "trainer/files/zip_archive.h"

namespace petlab::trainer {
namespace {

using Bytes = std::span<const std::byte>;

struct StorageType {
  std::string_view name;
  DType dtype;
};
constexpr std::array<StorageType, 10> kStorageTypes{{
    {"FloatStorage", DType::f32},
    {"DoubleStorage", DType::f64},
    {"HalfStorage", DType::f16},
    {"BFloat16Storage", DType::bf16},
    {"LongStorage", DType::i64},
    {"IntStorage", DType::i32},
    {"ShortStorage", DType::i16},
    {"CharStorage", DType::i8},
    {"ByteStorage", DType::u8},
    {"BoolStorage", DType::boolean},
}};

DType dtype_of(const pickle::Storage& storage) {
  for (const StorageType& type : kStorageTypes) {
    if (type.name == storage.type) return type.dtype;
  }
  // The pickle machine accepts no other names.
  throw Error(fmt::format("storage type {} is not known", storage.type));
}

/// A file's storages by key, and its name for messages.
struct Source {
  std::shared_ptr<const FileBytes> file;
  std::map<std::string, Bytes, std::less<>> storages;
};

/// One more than the index of the last element that a tensor uses. Absent if that overflows or a
/// size is negative.
std::optional<std::int64_t> extent(const pickle::Tensor& tensor) {
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    std::int64_t span = 0;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &span) ||
        __builtin_add_overflow(last, span, &last)) {
      return std::nullopt;
    }
  }
  if (__builtin_add_overflow(last, std::int64_t{1}, &last)) return std::nullopt;
  return last;
}

bool is_contiguous(const pickle::Tensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t i = tensor.sizes.size(); i-- > 0;) {
    if (tensor.sizes[i] == 1) continue;
    if (tensor.strides[i] != expected) return false;
    expected *= tensor.sizes[i];
  }
  return true;
}

/// Copies the elements of a strided tensor in row-major order.
std::shared_ptr<const std::vector<std::byte>> gather(const pickle::Tensor& tensor, Bytes storage,
                                                     std::size_t item, std::int64_t count) {
  auto copy = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(count) * item);
  std::vector<std::int64_t> index(tensor.sizes.size());
  std::int64_t from = tensor.offset;
  for (std::int64_t to = 0; to < count; ++to) {
    std::memcpy(copy->data() + static_cast<std::size_t>(to) * item,
                storage.data() + static_cast<std::size_t>(from) * item, item);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      from += tensor.strides[axis];
      if (++index[axis] < tensor.sizes[axis]) break;
      from -= tensor.strides[axis] * tensor.sizes[axis];
      index[axis] = 0;
    }
  }
  return copy;
}

TensorView view_of(const pickle::Tensor& tensor, const std::string& name, const Source& source) {
  const auto refuse = [&](const std::string& message) {
    throw Error(fmt::format("{}: tensor {}: {}", source.file->name(), name, message));
  };
  const std::string& key = tensor.storage.key;
  const auto storage = source.storages.find(key);
  if (storage == source.storages.end()) refuse(fmt::format("its storage {} is missing", key));
  TensorView view;
  view.dtype = dtype_of(tensor.storage);
  view.shape = tensor.sizes;
  view.owner = source.file;
  view.mapped = source.file->is_mapped();
  const auto item = static_cast<std::int64_t>(size_of(view.dtype));
  std::int64_t storage_bytes = 0;
  if (tensor.storage.elements < 0 ||
      __builtin_mul_overflow(tensor.storage.elements, item, &storage_bytes) ||
      static_cast<std::uint64_t>(storage_bytes) != storage->second.size()) {
    refuse(fmt::format("its storage {} holds {} bytes, expected {} elements of {}", key,
                       storage->second.size(), tensor.storage.elements, to_string(view.dtype)));
  }
  if (tensor.sizes.size() != tensor.strides.size()) {
    refuse(fmt::format("has {} sizes and {} strides", tensor.sizes.size(), tensor.strides.size()));
  }
  std::int64_t count = 1;
  bool is_sane = tensor.offset >= 0;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    is_sane = is_sane && tensor.sizes[i] >= 0 && tensor.strides[i] >= 0 &&
              !__builtin_mul_overflow(count, tensor.sizes[i], &count);
  }
  if (!is_sane) {
    refuse(fmt::format("shape {} with strides {} from element {} is impossible",
                       shape_text(tensor.sizes), shape_text(tensor.strides), tensor.offset));
  }
  if (count == 0) return view;
  const auto end = extent(tensor);
  if (!end || *end > tensor.storage.elements) {
    refuse(
        fmt::format("shape {} with strides {} from element {} reaches beyond its storage {} of "
                    "{} elements",
                    shape_text(tensor.sizes), shape_text(tensor.strides), tensor.offset, key,
                    tensor.storage.elements));
  }
  if (is_contiguous(tensor)) {
    view.bytes = storage->second.subspan(static_cast<std::size_t>(tensor.offset * item),
                                         static_cast<std::size_t>(count * item));
    return view;
  }
  // Views that repeat elements could request any amount of memory.
  if (count > tensor.storage.elements) {
    refuse(
        fmt::format("shape {} has more elements than its storage {} of {}: an expanded tensor "
                    "is not read",
                    shape_text(tensor.sizes), key, tensor.storage.elements));
  }
  const auto copy = gather(tensor, storage->second, static_cast<std::size_t>(item), count);
  view.bytes = *copy;
  view.owner = copy;
  view.mapped = false;
  return view;
}

std::map<std::string, TensorView> tensors_of(const pickle::Value& value, const Source& source) {
  const auto* dict = std::get_if<pickle::Dict>(&value.data);
  if (dict == nullptr) {
    throw Error(
        fmt::format("{}: the pickle does not contain a dict of tensors", source.file->name()));
  }
  std::map<std::string, TensorView> tensors;
  for (const auto& [key, item] : dict->items) {
    const auto* name = std::get_if<std::string>(&key->data);
    const auto* tensor = std::get_if<pickle::Tensor>(&item->data);
    if (name == nullptr || tensor == nullptr) continue;
    if (!tensors.emplace(*name, view_of(*tensor, *name, source)).second) {
      throw Error(fmt::format("{}: tensor {} occurs twice", source.file->name(), *name));
    }
  }
  return tensors;
}

std::map<std::string, TensorView> read_zipped(const std::shared_ptr<const FileBytes>& file) {
  const auto entries = read_zip(file->bytes(), file->name());
  // The archive has a single folder, whose name varies.
  constexpr std::string_view kPickle = "/data.pkl";
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.first.ends_with(kPickle) &&
           entry.first.find('/') == entry.first.size() - kPickle.size();
  });
  if (found == entries.end()) {
    throw Error(fmt::format("{}: the zip archive has no data.pkl, so torch.save did not write it",
                            file->name()));
  }
  const std::string folder = found->first.substr(0, found->first.size() - kPickle.size() + 1);
  if (const auto order = entries.find(folder + "byteorder"); order != entries.end()) {
    const std::string_view text(reinterpret_cast<const char*>(order->second.data()),
                                order->second.size());
    if (text != "little") {
      throw Error(
          fmt::format("{}: byte order is '{}', expected little", file->name(), text.substr(0, 20)));
    }
  }
  Source source{file, {}};
  const std::string storage_folder = folder + "data/";
  for (const auto& [name, bytes] : entries) {
    if (name.starts_with(storage_folder)) {
      source.storages.emplace(name.substr(storage_folder.size()), bytes);
    }
  }
  pickle::Arena arena;
  std::size_t position = 0;
  return tensors_of(pickle::load(found->second, position, arena, file->name()), source);
}

/// The magic number at the start of torch's legacy files, ten bytes long.
constexpr std::string_view kLegacyMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr std::string_view kLegacyStart("\x80\x02\x8a\x0a", 4);
constexpr std::int64_t kLegacyProtocol = 1001;

bool looks_like_legacy(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with(kLegacyStart) &&
         text.substr(kLegacyStart.size()).starts_with(kLegacyMagic);
}

/// The element size in bytes for each storage in the pickle, by key.
std::map<std::string, std::size_t, std::less<>> element_sizes(const pickle::Arena& arena) {
  std::map<std::string, std::size_t, std::less<>> sizes;
  for (const pickle::Value& value : arena) {
    if (const auto* storage = std::get_if<pickle::Storage>(&value.data)) {
      sizes.emplace(storage->key, size_of(dtype_of(*storage)));
    }
  }
  return sizes;
}

/// Reads five pickles (magic number, protocol, system, object and storage keys), then the number of
/// elements and the bytes for each key.
std::map<std::string, TensorView> read_legacy(const std::shared_ptr<const FileBytes>& file) {
  const Bytes bytes = file->bytes();
  const std::string& name = file->name();
  const auto refuse = [&](const std::string& message) { throw Error(name + ": " + message); };
  pickle::Arena arena;
  std::size_t position = 0;
  pickle::load(bytes, position, arena, name);  // the magic number, already checked
  const auto& protocol = pickle::load(bytes, position, arena, name);
  if (const auto* number = std::get_if<std::int64_t>(&protocol.data);
      number == nullptr || *number != kLegacyProtocol) {
    refuse(fmt::format("is in torch's format before 1.6, but not in its protocol {}",
                       kLegacyProtocol));
  }
  const auto& system = pickle::load(bytes, position, arena, name);
  if (const auto* dict = std::get_if<pickle::Dict>(&system.data)) {
    for (const auto& [key, value] : dict->items) {
      const auto* text = std::get_if<std::string>(&key->data);
      const auto* flag = std::get_if<bool>(&value->data);
      if (text != nullptr && *text == "little_endian" && flag != nullptr && !*flag) {
        refuse("byte order is big, expected little");
      }
    }
  }
  const auto& object = pickle::load(bytes, position, arena, name);
  const auto sizes = element_sizes(arena);
  const auto& keys = pickle::load(bytes, position, arena, name);
  const auto* list = std::get_if<pickle::List>(&keys.data);
  if (list == nullptr) refuse("has no list of storages");
  Source source{file, {}};
  for (const pickle::Value* item : list->items) {
    const auto* key = std::get_if<std::string>(&item->data);
    const auto size = key == nullptr ? sizes.end() : sizes.find(*key);
    if (size == sizes.end()) refuse("lists a storage that no tensor names");
    std::uint64_t elements = 0;
    if (bytes.size() - position < sizeof(elements)) {
      refuse(fmt::format("is truncated: storage {} is missing", *key));
    }
    std::memcpy(&elements, bytes.data() + position, sizeof(elements));
    position += sizeof(elements);
    if (elements > (bytes.size() - position) / size->second) {
      refuse(fmt::format("is truncated: storage {} of {} elements ends beyond the file", *key,
                         elements));
    }
    source.storages.emplace(*key, bytes.subspan(position, elements * size->second));
    position += elements * size->second;
  }
  return tensors_of(object, source);
}

}  // namespace

std::map<std::string, TensorView> read_torch_file(const std::shared_ptr<const FileBytes>& file) {
  if (looks_like_zip(file->bytes())) return read_zipped(file);
  if (looks_like_legacy(file->bytes())) return read_legacy(file);
  throw Error(fmt::format(
      "{}: is not a file of torch.save: neither a zip archive nor its older format", file->name()));
}

}  // namespace petlab::trainer
