#include "trainer/files/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "base/utf8.h"
#include "trainer/files/error.h"

namespace petlab::trainer::pickle {
namespace {

// Opcodes, by their names in Python's pickletools: those in torch's files, and their replacements
// in protocol 4.
enum Opcode : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kSize = "torch.Size";

// All names that a file may contain. They are never looked up or imported: the machine interprets
// them itself.
constexpr std::array<std::string_view, 14> kKnown{
    kOrderedDict,         kRebuildTensor,        kRebuildParameter,    kSize,
    "torch.FloatStorage", "torch.DoubleStorage", "torch.HalfStorage",  "torch.BFloat16Storage",
    "torch.LongStorage",  "torch.IntStorage",    "torch.ShortStorage", "torch.CharStorage",
    "torch.ByteStorage",  "torch.BoolStorage",
};
constexpr std::string_view kTorch = "torch.";

/// The stack machine that interprets a pickle.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, std::size_t& position, Arena& arena,
          const std::string& file)
      : bytes_(bytes), position_(position), arena_(arena), file_(file) {}

  const Value& run() {
    while (true) {
      const auto opcode = number<std::uint8_t>();
      if (opcode == kStop) return *pop();
      step(opcode);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(fmt::format("{}: the pickle: {}", file_, message));
  }

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size() - position_) {
      refuse(fmt::format("is truncated: {} bytes expected at {}, found {}", size, position_,
                         bytes_.size() - position_));
    }
    const auto part = bytes_.subspan(position_, size);
    position_ += size;
    return part;
  }

  template <typename Number>
  Number number() {
    Number result;
    std::memcpy(&result, take(sizeof(result)).data(), sizeof(result));
    return result;
  }

  std::string text(std::uint64_t size) {
    const auto part = take(size);
    std::string result(reinterpret_cast<const char*>(part.data()), part.size());
    if (base::first_invalid_utf8(result)) refuse("a text is not UTF-8");
    return result;
  }

  std::string line() {
    const auto rest = bytes_.subspan(position_);
    const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
    if (end == rest.end()) refuse("is truncated in a name");
    const std::string result = text(static_cast<std::uint64_t>(end - rest.begin()));
    ++position_;
    return result;
  }

  template <typename Data>
  void push(Data data) {
    arena_.push_back(Value{std::move(data)});
    stack_.push_back(&arena_.back());
  }

  Value* pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("its stack is empty");
    Value* top = stack_.back();
    stack_.pop_back();
    return top;
  }

  Value* top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("its stack is empty");
    return stack_.back();
  }

  /// Removes the last mark and returns everything above it.
  std::vector<Value*> pop_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value*> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  template <typename Data>
  Data& wanted(Value* value, const char* what) {
    Data* data = std::get_if<Data>(&value->data);
    if (data == nullptr) refuse(fmt::format("found another value where {} is expected", what));
    return *data;
  }

  template <typename Data>
  const Data& wanted(const Value* value, const char* what) {
    return wanted<Data>(const_cast<Value*>(value), what);
  }

  void push_tuple(std::size_t size) {
    Tuple tuple;
    tuple.items.resize(size);
    for (std::size_t i = size; i-- > 0;) tuple.items[i] = pop();
    push(std::move(tuple));
  }

  void push_global(const std::string& name) {
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
      refuse(fmt::format("names the global {}, which tensors do not use; nothing was run", name));
    }
    push(Global{name});
  }

  void memo_put(std::uint32_t key) { memo_[key] = top(); }

  void memo_get(std::uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse(fmt::format("refers to memo {}, which does not exist", key));
    stack_.push_back(found->second);
  }

  void set_items(Dict& dict, const std::vector<Value*>& items) {
    if (items.size() % 2 != 0) refuse("a key has no value");
    for (std::size_t i = 0; i < items.size(); i += 2) {
      dict.items.emplace_back(items[i], items[i + 1]);
    }
  }

  std::vector<std::int64_t> whole_numbers(const Value* value) {
    std::vector<std::int64_t> numbers;
    for (const Value* item : wanted<Tuple>(value, "a tuple of sizes").items) {
      numbers.push_back(wanted<std::int64_t>(item, "a whole number"));
    }
    return numbers;
  }

  /// BINPERSID: torch's reference to a storage.
  void push_storage() {
    const auto& items = wanted<Tuple>(pop(), "a persistent id").items;
    if (items.size() < 5 || items.size() > 6 ||
        wanted<std::string>(items[0], "'storage'") != "storage") {
      refuse("a persistent id is not a torch storage");
    }
    if (items.size() == 6 && !std::holds_alternative<None>(items[5]->data)) {
      refuse("a storage is a view of another one, which is not supported");
    }
    const std::string& type = wanted<Global>(items[1], "a storage's type").name;
    if (!type.ends_with("Storage")) refuse(fmt::format("{} is not a storage type", type));
    push(Storage{type.substr(kTorch.size()), wanted<std::string>(items[2], "a storage's key"),
                 wanted<std::int64_t>(items[4], "a storage's size")});
  }

  void reduce() {
    const auto& arguments = wanted<Tuple>(pop(), "arguments").items;
    const std::string& name = wanted<Global>(pop(), "a global").name;
    if (name == kOrderedDict) {
      Dict dict;
      if (arguments.size() > 1) refuse("an OrderedDict has more than one argument");
      if (arguments.size() == 1) {
        for (const Value* pair : wanted<List>(arguments[0], "a list of pairs").items) {
          // A pair is a tuple or, in files of Python 2, a list.
          const auto* tuple = std::get_if<Tuple>(&pair->data);
          const auto& items = tuple != nullptr ? tuple->items : wanted<List>(pair, "a pair").items;
          if (items.size() != 2) refuse("a pair does not have two items");
          dict.items.emplace_back(items[0], items[1]);
        }
      }
      push(std::move(dict));
    } else if (name == kRebuildTensor) {
      if (arguments.size() < 4) refuse("a tensor has too few arguments");
      push(Tensor{wanted<Storage>(arguments[0], "a storage"),
                  wanted<std::int64_t>(arguments[1], "an offset"), whole_numbers(arguments[2]),
                  whole_numbers(arguments[3])});
    } else if (name == kRebuildParameter) {
      if (arguments.empty()) refuse("a parameter has no tensor");
      push(wanted<Tensor>(arguments[0], "a tensor"));
    } else if (name == kSize) {
      if (arguments.size() != 1) refuse("a size does not have one argument");
      push(Tuple{wanted<Tuple>(arguments[0], "a tuple")});
    } else {
      refuse(fmt::format("calls {}, which is not allowed", name));
    }
  }

  void step(std::uint8_t opcode);

  std::span<const std::byte> bytes_;
  std::size_t& position_;
  Arena& arena_;
  const std::string& file_;
  std::vector<Value*> stack_;
  std::vector<std::size_t> marks_;  // stack heights
  std::unordered_map<std::uint32_t, Value*> memo_;
};

void Machine::step(std::uint8_t opcode) {
  switch (opcode) {
    case kProto: {
      constexpr int kNewest = 5;
      const int protocol = number<std::uint8_t>();
      if (protocol > kNewest) {
        refuse(fmt::format("has protocol {}, newer than {}", protocol, kNewest));
      }
      break;
    }
    case kFrame:
      number<std::uint64_t>();
      break;
    case kMark:
      marks_.push_back(stack_.size());
      break;
    case kPop:
      pop();
      break;
    case kDup:
      stack_.push_back(top());
      break;
    case kNone:
      push(None{});
      break;
    case kNewTrue:
      push(true);
      break;
    case kNewFalse:
      push(false);
      break;
    case kBinInt:
      push(std::int64_t{number<std::int32_t>()});
      break;
    case kBinInt1:
      push(std::int64_t{number<std::uint8_t>()});
      break;
    case kBinInt2:
      push(std::int64_t{number<std::uint16_t>()});
      break;
    case kLong1: {
      // Two's complement, little-endian. The legacy format's magic number has ten bytes.
      const auto part = take(number<std::uint8_t>());
      std::uint64_t value = 0;
      const bool negative = !part.empty() && (part.back() & std::byte{0x80}) != std::byte{0};
      if (negative) value = ~std::uint64_t{0};
      for (std::size_t i = 0; i < std::min(part.size(), sizeof(value)); ++i) {
        value &= ~(std::uint64_t{0xff} << (8 * i));
        value |= std::to_integer<std::uint64_t>(part[i]) << (8 * i);
      }
      if (part.size() <= sizeof(value)) {
        push(static_cast<std::int64_t>(value));
      } else {
        push(std::string(reinterpret_cast<const char*>(part.data()), part.size()));
      }
      break;
    }
    case kBinFloat: {
      std::uint64_t bits = 0;  // big-endian
      for (const std::byte byte : take(sizeof(bits))) {
        bits = (bits << 8) | std::to_integer<std::uint64_t>(byte);
      }
      push(std::bit_cast<double>(bits));
      break;
    }
    case kBinUnicode:
      push(text(number<std::uint32_t>()));
      break;
    case kShortBinUnicode:
      push(text(number<std::uint8_t>()));
      break;
    case kEmptyTuple:
      push(Tuple{});
      break;
    case kTuple1:
      push_tuple(1);
      break;
    case kTuple2:
      push_tuple(2);
      break;
    case kTuple3:
      push_tuple(3);
      break;
    case kTuple: {
      const auto items = pop_mark();
      push(Tuple{{items.begin(), items.end()}});
      break;
    }
    case kEmptyList:
      push(List{});
      break;
    case kAppend: {
      const Value* item = pop();
      wanted<List>(top(), "a list").items.push_back(item);
      break;
    }
    case kAppends: {
      const auto items = pop_mark();
      auto& list = wanted<List>(top(), "a list").items;
      list.insert(list.end(), items.begin(), items.end());
      break;
    }
    case kEmptyDict:
      push(Dict{});
      break;
    case kSetItem: {
      Value* value = pop();
      Value* key = pop();
      set_items(wanted<Dict>(top(), "a dict"), {key, value});
      break;
    }
    case kSetItems: {
      const auto items = pop_mark();
      set_items(wanted<Dict>(top(), "a dict"), items);
      break;
    }
    case kBinPut:
      memo_put(number<std::uint8_t>());
      break;
    case kLongBinPut:
      memo_put(number<std::uint32_t>());
      break;
    case kMemoize:
      memo_put(static_cast<std::uint32_t>(memo_.size()));
      break;
    case kBinGet:
      memo_get(number<std::uint8_t>());
      break;
    case kLongBinGet:
      memo_get(number<std::uint32_t>());
      break;
    case kGlobal: {
      const std::string module = line();
      push_global(module + "." + line());
      break;
    }
    case kStackGlobal: {
      const std::string name = wanted<std::string>(pop(), "a name");
      push_global(wanted<std::string>(pop(), "a module's name") + "." + name);
      break;
    }
    case kBinPersId:
      push_storage();
      break;
    case kReduce:
      reduce();
      break;
    case kBuild:
      // The state of an OrderedDict is its _metadata, which has no information on tensors.
      pop();
      wanted<Dict>(top(), "a dict");
      break;
    default:
      refuse(fmt::format("has opcode 0x{:02x} at byte {}, which tensors do not use", opcode,
                         position_ - 1));
  }
}

}  // namespace

const Value& load(std::span<const std::byte> bytes, std::size_t& position, Arena& arena,
                  const std::string& file) {
  return Machine(bytes, position, arena, file).run();
}

}  // namespace petlab::trainer::pickle
