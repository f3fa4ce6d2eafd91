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
/// dict and collections.OrderedDict, in the order of the file.
struct Dict {
  std::vector<std::pair<const Value*, const Value*>> items;
};
/// A name of the table of known ones (pickle.cpp); nothing is ever imported.
struct Global {
  std::string name;  // "torch.FloatStorage"
};
/// What a persistent id stands for: ('storage', type, key, location, elements).
struct Storage {
  std::string type;  // "FloatStorage"
  std::string key;
  std::int64_t elements = 0;
};
/// A tensor as torch rebuilds it: a part of a storage. Nothing about it was checked.
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

/// All values of a pickle; they point at each other.
using Arena = std::deque<Value>;

/// Reads the pickle that begins at `position`, which is moved behind its end. It knows numbers,
/// texts, tuples, lists, dicts and the few names by which torch writes tensors; whatever else it
/// names is refused, and nothing in it is ever called. Throws Error beginning with `file`.
const Value& load(std::span<const std::byte> bytes, std::size_t& position, Arena& arena,
                  const std::string& file);

}  // namespace petlab::trainer::pickle
