#include "trainer/tokenizers/byte_bpe.h"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <bit>
#include <queue>
#include <stdexcept>

#include "base/line_ends.h"
#include "base/shown.h"
#include "base/utf8.h"
#include "trainer/files/error.h"
#include "trainer/files/utf8.h"

namespace petlab::trainer {
namespace {

enum class Kind : std::uint8_t { space, letter, number, other };

constexpr std::array<Kind, 128> ascii_kinds() {
  std::array<Kind, 128> table{};
  for (std::size_t c = 0; c < table.size(); ++c) {
    table[c] = Kind::other;
    if (c == ' ' || (c >= 0x09 && c <= 0x0d)) table[c] = Kind::space;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) table[c] = Kind::letter;
    if (c >= '0' && c <= '9') table[c] = Kind::number;
  }
  return table;
}
constexpr std::array<Kind, 128> kAsciiKinds = ascii_kinds();

/// Returns the kind of the character at `position` and moves `position` past it.
Kind next_kind(std::string_view text, std::size_t& position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) {
    ++position;
    return kAsciiKinds[byte];
  }
  const char32_t c = next_code_point(text, position);
  if (is_white_space(c)) return Kind::space;
  const std::uint32_t category = U_MASK(u_charType(static_cast<UChar32>(c)));
  if ((category & U_GC_L_MASK) != 0) return Kind::letter;
  if ((category & U_GC_N_MASK) != 0) return Kind::number;
  return Kind::other;
}

/// GPT-2's alphabet: printable bytes represent themselves, the others become U+0100 and up.
struct ByteAlphabet {
  std::array<char32_t, 256> characters{};
  std::unordered_map<char32_t, std::uint8_t> bytes;

  ByteAlphabet() {
    char32_t next = 0x100;
    for (std::size_t byte = 0; byte < characters.size(); ++byte) {
      const bool prints =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      characters[byte] = prints ? static_cast<char32_t>(byte) : next++;
      bytes.emplace(characters[byte], static_cast<std::uint8_t>(byte));
    }
  }
};

const ByteAlphabet& alphabet() {
  static const ByteAlphabet instance;
  return instance;
}

constexpr std::size_t kShortWord = 24;        // up to it, scanning all pairs beats a queue
constexpr std::size_t kLongestCached = 64;    // bytes
constexpr std::size_t kMostCached = 1 << 16;  // words

std::size_t hash_pair(std::uint64_t pair) {
  return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15u) >> 20);
}

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
         static_cast<std::uint32_t>(right);
}

}  // namespace

std::string in_byte_alphabet(std::string_view bytes) {
  std::string written;
  for (const char byte : bytes) {
    append_utf8(alphabet().characters[static_cast<unsigned char>(byte)], written);
  }
  return written;
}

std::size_t gpt2_word_end(std::string_view text, std::size_t begin) {
  std::size_t position = begin;
  if (text[begin] == '\'') {
    const std::string_view rest = text.substr(begin + 1);
    for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      if (rest.starts_with(ending)) return begin + 1 + ending.size();
    }
  }
  Kind kind = next_kind(text, position);
  if (kind == Kind::space) {
    // A single plain space belongs to the word after it.
    if (text[begin] == ' ' && position < text.size()) {
      std::size_t after = position;
      const Kind next = next_kind(text, after);
      if (next != Kind::space) {
        kind = next;
        position = after;
      }
    }
    if (kind == Kind::space) {
      std::size_t last = begin;  // start of the run's last character
      while (position < text.size()) {
        std::size_t after = position;
        if (next_kind(text, after) != Kind::space) return last == begin ? position : last;
        last = position;
        position = after;
      }
      return position;
    }
  }
  while (position < text.size()) {
    std::size_t after = position;
    if (next_kind(text, after) != kind) break;
    position = after;
  }
  return position;
}

std::vector<std::pair<std::string, std::string>> parse_merges(std::string_view text,
                                                              const std::string& file) {
  std::vector<std::pair<std::string, std::string>> merges;
  if (base::lines_end_with_cr(text))
    throw Error(fmt::format("{}: {}", file, base::kLinesEndWithCr));
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version") || (line.empty() && text.empty())) continue;
    if (const auto invalid = base::first_invalid_utf8(line)) {
      throw Error(fmt::format("{}:{}: byte {} is not UTF-8", file, number, *invalid + 1));
    }
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      throw Error(fmt::format("{}:{}: found {}, expected two tokens and one space", file, number,
                              base::in_quotes(line)));
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

ByteBpe::ByteBpe(Vocabulary vocabulary,
                 const std::vector<std::pair<std::string, std::string>>& merges,
                 const std::string& merges_file, const ByteBpeOptions& options)
    : vocabulary_(std::move(vocabulary)),
      add_prefix_space_(options.add_prefix_space),
      compose_(options.compose) {
  const auto wanted = [&](const std::string& token) {
    const auto id = vocabulary_.find(token);
    if (!id) throw Error(fmt::format("{}: has no token {}", vocabulary_.file(), token));
    return *id;
  };
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    std::string token;
    append_utf8(alphabet().characters[byte], token);
    const auto id = vocabulary_.find(token);
    if (!id) {
      throw Error(fmt::format("{}: has no token '{}' for byte 0x{:02X}, expected all 256",
                              vocabulary_.file(), token, byte));
    }
    byte_ids_[byte] = *id;
  }
  merges_.resize(std::bit_ceil(merges.size() * 2 + 2));
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto left_id = vocabulary_.find(left);
    const auto right_id = vocabulary_.find(right);
    const auto merged = vocabulary_.find(left + right);
    if (!left_id || !right_id || !merged) {
      throw Error(fmt::format("{}: merge {} ({} {}) is not in the vocabulary {}", merges_file,
                              rank + 1, base::in_quotes(left), base::in_quotes(right),
                              vocabulary_.file()));
    }
    const Merge merge{pair_of(*left_id, *right_id), static_cast<std::int32_t>(rank), *merged};
    std::size_t slot = hash_pair(merge.pair) & (merges_.size() - 1);
    while (merges_[slot].pair != Merge{}.pair && merges_[slot].pair != merge.pair) {
      slot = (slot + 1) & (merges_.size() - 1);
    }
    // Of duplicate merges, the last counts, as in Hugging Face.
    merges_[slot] = merge;
  }
  if (!options.cls_token.empty()) special_.before = {wanted(options.cls_token)};
  if (!options.sep_token.empty()) {
    const std::int32_t sep = wanted(options.sep_token);
    special_.between = {sep};
    if (!options.single_separator) special_.between.push_back(sep);
    special_.after = {sep};
    special_.second_type = options.second_type;
  }
  if (!options.pad_token.empty()) special_.pad = wanted(options.pad_token);
  vocab_size_ = vocabulary_.size();
  set_added(options.added);
}

const ByteBpe::Merge* ByteBpe::find_merge(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t slot = hash_pair(pair) & (merges_.size() - 1);
  while (merges_[slot].pair != Merge{}.pair) {
    if (merges_[slot].pair == pair) return &merges_[slot];
    slot = (slot + 1) & (merges_.size() - 1);
  }
  return nullptr;
}

void ByteBpe::merge_short(std::vector<std::int32_t>& symbols) const {
  while (symbols.size() > 1) {
    const Merge* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Merge* merge = find_merge(symbols[i], symbols[i + 1]);
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
        best = merge;
        at = i;
      }
    }
    if (best == nullptr) return;
    symbols[at] = best->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

void ByteBpe::merge_long(std::vector<std::int32_t>& symbols) const {
  // A linked list of symbols and a queue of possible merges, by rank and then from left to right.
  constexpr std::int32_t kNone = -1;
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;   // position
    std::int32_t right;  // position
    std::uint64_t pair;  // the pair at that place when it was queued
    std::int32_t merged;
    bool operator<(const Candidate& other) const {
      return std::pair(rank, left) > std::pair(other.rank, other.left);
    }
  };
  const auto n = static_cast<std::int32_t>(symbols.size());
  std::vector<std::int32_t> next(symbols.size()), previous(symbols.size());
  for (std::int32_t i = 0; i < n; ++i) {
    next[static_cast<std::size_t>(i)] = i + 1 < n ? i + 1 : kNone;
    previous[static_cast<std::size_t>(i)] = i - 1;
  }
  std::priority_queue<Candidate> queue;
  const auto at = [&](std::int32_t i) -> std::int32_t& {
    return symbols[static_cast<std::size_t>(i)];
  };
  const auto offer = [&](std::int32_t left, std::int32_t right) {
    if (left == kNone || right == kNone) return;
    if (const Merge* merge = find_merge(at(left), at(right))) {
      queue.push({merge->rank, left, right, merge->pair, merge->merged});
    }
  };
  for (std::int32_t i = 0; i + 1 < n; ++i) offer(i, i + 1);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    // Skip outdated candidates. Symbols that were merged away are negative and occur in no pair.
    if (at(top.left) < 0 || next[static_cast<std::size_t>(top.left)] != top.right ||
        pair_of(at(top.left), at(top.right)) != top.pair) {
      continue;
    }
    at(top.left) = top.merged;
    at(top.right) = kNone;
    const std::int32_t after = next[static_cast<std::size_t>(top.right)];
    next[static_cast<std::size_t>(top.left)] = after;
    if (after != kNone) previous[static_cast<std::size_t>(after)] = top.left;
    offer(previous[static_cast<std::size_t>(top.left)], top.left);
    offer(top.left, after);
  }
  std::erase(symbols, kNone);
}

void ByteBpe::append_word(std::string_view word, Cache* cache,
                          std::vector<std::int32_t>& ids) const {
  const bool cached = cache != nullptr && word.size() <= kLongestCached;
  std::string key;
  if (cached) {
    key = word;
    if (const auto found = cache->find(key); found != cache->end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      return;
    }
  }
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  for (const char byte : word) symbols.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
  if (symbols.size() <= kShortWord) {
    merge_short(symbols);
  } else {
    merge_long(symbols);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  if (cached && cache->size() < kMostCached) cache->emplace(std::move(key), std::move(symbols));
}

std::string ByteBpe::normalize(std::string_view text) const {
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<signed char>(c) >= 0; });
  if (!compose_ || is_ascii) return std::string(text);
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const nfc = icu::Normalizer2::getNFCInstance(status);
  std::string composed;
  icu::StringByteSink<std::string> sink(&composed);
  if (U_SUCCESS(status)) {
    nfc->normalizeUTF8(0, {text.data(), static_cast<std::int32_t>(text.size())}, sink, nullptr,
                       status);
  }
  if (U_FAILURE(status)) {
    throw std::runtime_error(fmt::format("ICU cannot normalise a text: {}", u_errorName(status)));
  }
  return composed;
}

void ByteBpe::append(std::string_view text, std::vector<std::int32_t>& ids) const {
  std::string composed, with_space;
  if (compose_) {
    composed = normalize(text);
    text = composed;
  }
  // Only a plain space counts, not other white space, as in Hugging Face's fast tokenizers.
  if (add_prefix_space_ && !text.starts_with(' ')) {
    with_space.reserve(text.size() + 1);
    with_space.push_back(' ');
    with_space.append(text);
    text = with_space;
  }
  const std::unique_lock lock(cache_mutex_, std::try_to_lock);
  Cache* cache = lock.owns_lock() ? &cache_ : nullptr;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = gpt2_word_end(text, begin);
    append_word(text.substr(begin, end - begin), cache, ids);
    begin = end;
  }
}

std::string ByteBpe::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (const AddedToken* added = added_token(id)) {
      if (!added->special || !skip_special) text += added->content;
      continue;
    }
    const auto token = vocabulary_.token(id);
    if (!token) continue;
    for (std::size_t position = 0; position < token->size();) {
      const std::size_t begin = position;
      const auto byte = alphabet().bytes.find(next_code_point(*token, position));
      if (byte == alphabet().bytes.end()) {
        // Characters outside the byte alphabet, as in an added token with a space, are copied
        // unchanged.
        text += token->substr(begin, position - begin);
      } else {
        text += static_cast<char>(byte->second);
      }
    }
  }
  return replace_invalid_utf8(text);
}

}  // namespace petlab::trainer
