#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace petlab::trainer::pickle {

struct Value;

struct None {};
struct Tuple {
  std::vector<const Value*> items;
};
struct List {
  std::vector<const Value*> items;
};
/// A dict or collections.OrderedDict, in the file's order.
struct Dict {
  std::vector<std::pair<const Value*, const Value*>> items;
};
/// A name in the table of known ones (pickle.cpp). Nothing is ever imported.
struct Global {
  std::string name;  // "torch.FloatStorage"
};
/// The target of a persistent id: ('storage', type, key, location, elements).
struct Storage {
  std::string type;  // "FloatStorage"
  std::string key;
  std::int64_t elements = 0;
};
/// The arguments with which torch rebuilds a tensor from part of a storage. They are unchecked.
struct Tensor {
  Storage storage;
  std::int64_t offset = 0;  // in elements
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // in elements
};

struct Value {
  std::variant<None, bool, std::int64_t, double, std::string, Tuple, List, Dict, Global, Storage,
               Tensor>
      data;
};

/// Owns all values of a pickle, which point to each other.
using Arena = std::deque<Value>;

/// Reads the pickle at `position` and moves `position` to its end. Supports numbers, texts, tuples,
/// lists, dicts and the few names with which torch writes tensors. Rejects all other names, and
/// never calls anything. Throws Error beginning with `file`.
const Value& load(std::span<const std::byte> bytes, std::size_t& position, Arena& arena,
                  const std::string& file);

}  // namespace petlab::trainer::pickle
