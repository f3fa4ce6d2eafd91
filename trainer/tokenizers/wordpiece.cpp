#include "trainer/tokenizers/wordpiece.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

#include "trainer/files/error.h"
#include "trainer/files/utf8.h"

namespace petlab::trainer {
namespace {

constexpr std::string_view kContinuation = "##";
constexpr std::size_t kLongestWord = 100;  // in code points; longer words are unknown

/// The treatment of an ASCII byte. Other characters take a slower path.
enum class Ascii : std::uint8_t { drop, space, punctuation, letter };

constexpr std::array<Ascii, 128> ascii_table() {
  std::array<Ascii, 128> table{};
  for (std::size_t c = 0; c < table.size(); ++c) {
    const bool alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      table[c] = Ascii::space;
    } else if (c < 0x20 || c == 0x7f) {
      table[c] = Ascii::drop;
    } else {
      table[c] = alphanumeric ? Ascii::letter : Ascii::punctuation;
    }
  }
  return table;
}
constexpr std::array<Ascii, 128> kAscii = ascii_table();

/// The Unicode blocks that BERT treats as Chinese.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/// The general category in Unicode 8.0, the version in Hugging Face's tokenizers. Characters
/// assigned later count as unassigned.
std::int8_t category(char32_t c) {
  constexpr std::uint8_t kNewestVersion = 8;
  UVersionInfo age{};
  u_charAge(static_cast<UChar32>(c), age);
  if (age[0] > kNewestVersion) return U_UNASSIGNED;
  return u_charType(static_cast<UChar32>(c));
}

bool is_dropped(char32_t c) {
  if (c == 0xFFFD) return true;
  const std::int8_t type = category(c);
  return type == U_CONTROL_CHAR || type == U_FORMAT_CHAR || type == U_PRIVATE_USE_CHAR;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return kAscii[c] == Ascii::punctuation;
  return (U_MASK(category(c)) & U_GC_P_MASK) != 0;
}

const UNormalizer2* decomposition() {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* nfd = unorm2_getNFDInstance(&status);
  if (U_FAILURE(status)) {
    throw std::runtime_error(fmt::format("ICU's NFD data: {}", u_errorName(status)));
  }
  return nfd;
}

/// Calls `each` with every character of c's normalised form: control characters are dropped, white
/// space becomes a plain space, CJK gets a space on both sides, and accents and capitals are
/// treated as the options say.
template <typename Each>
void normalize_character(char32_t c, const WordPieceOptions& options, const Each& each) {
  if (c < 0x80 && kAscii[c] == Ascii::space) return each(U' ');
  if (is_dropped(c)) return;
  if (is_white_space(c)) return each(U' ');
  const auto lowered = [&](char32_t part) {
    if (!options.lower_case) return each(part);
    if (part == 0x130) {
      // The only character that lower-cases to two, in any language.
      each(U'i');
      return each(char32_t{0x307});
    }
    each(static_cast<char32_t>(u_tolower(static_cast<UChar32>(part))));
  };
  const auto stripped = [&](char32_t part) {
    if (category(part) != U_NON_SPACING_MARK) lowered(part);
  };
  const bool chinese = options.split_chinese && is_chinese(c);
  if (chinese) each(U' ');
  if (options.strip_accents) {
    static const UNormalizer2* const nfd = decomposition();
    std::array<UChar, 64> parts;
    UErrorCode status = U_ZERO_ERROR;
    const std::int32_t length =
        unorm2_getDecomposition(nfd, static_cast<UChar32>(c), parts.data(),
                                static_cast<std::int32_t>(parts.size()), &status);
    if (length < 0 || U_FAILURE(status)) {
      stripped(c);
    } else {
      for (std::int32_t i = 0; i < length;) {
        UChar32 part = 0;
        U16_NEXT(parts.data(), i, length, part);
        stripped(static_cast<char32_t>(part));
      }
    }
  } else {
    lowered(c);
  }
  if (chinese) each(U' ');
}

/// The word being collected.
struct Word {
  std::string text;
  std::size_t characters = 0;

  template <typename Visit>
  void end(const Visit& visit) {
    if (!text.empty()) visit(std::string_view(text), characters);
    text.clear();
    characters = 0;
  }
};

template <typename Visit>
void add_character(char32_t c, const WordPieceOptions& options, Word& word, const Visit& visit) {
  normalize_character(c, options, [&](char32_t normalized) {
    if (normalized == ' ') return word.end(visit);
    const bool punctuation = is_punctuation(normalized);
    if (punctuation) word.end(visit);
    append_utf8(normalized, word.text);
    ++word.characters;
    if (punctuation) word.end(visit);
  });
}

/// Calls visit(word, its number of characters) for each word to look up.
template <typename Visit>
void each_word(std::string_view text, const WordPieceOptions& options, const Visit& visit) {
  Word word;
  for (std::size_t position = 0; position < text.size();) {
    const auto byte = static_cast<unsigned char>(text[position]);
    if (byte >= 0x80) {
      add_character(next_code_point(text, position), options, word, visit);
      continue;
    }
    ++position;
    switch (kAscii[byte]) {
      case Ascii::drop:
        break;
      case Ascii::space:
        word.end(visit);
        break;
      case Ascii::punctuation:
        word.end(visit);
        word.text.push_back(static_cast<char>(byte));
        word.characters = 1;
        word.end(visit);
        break;
      case Ascii::letter: {
        const bool upper = options.lower_case && byte >= 'A' && byte <= 'Z';
        word.text.push_back(static_cast<char>(upper ? byte + ('a' - 'A') : byte));
        ++word.characters;
        break;
      }
    }
  }
  word.end(visit);
}

}  // namespace

std::vector<std::string> wordpiece_words(std::string_view text, const WordPieceOptions& options) {
  std::vector<std::string> words;
  each_word(text, options,
            [&](std::string_view word, std::size_t /*characters*/) { words.emplace_back(word); });
  return words;
}

WordPiece::WordPiece(Vocabulary vocabulary, const WordPieceOptions& options)
    : vocabulary_(std::move(vocabulary)), options_(options) {
  const auto wanted = [&](const std::string& token) {
    const auto id = vocabulary_.find(token);
    if (!id) {
      throw Error(fmt::format("{}: has no token {}, expected all special tokens",
                              vocabulary_.file(), token));
    }
    return *id;
  };
  unknown_ = wanted(options.unk_token);
  const std::int32_t cls = wanted(options.cls_token);
  const std::int32_t sep = wanted(options.sep_token);
  special_ = {.before = {cls},
              .between = {sep},
              .after = {sep},
              .second_type = 1,
              .pad = wanted(options.pad_token)};
  std::vector<AddedToken> added = options.added;
  for (const std::string& token : {options.unk_token, options.cls_token, options.sep_token,
                                   options.pad_token, options.mask_token}) {
    const auto id = vocabulary_.find(token);
    const bool exists = std::any_of(added.begin(), added.end(), [&](const AddedToken& other) {
      return other.content == token;
    });
    if (id && !exists) added.push_back({.content = token, .id = *id});
  }
  vocab_size_ = vocabulary_.size();
  for (AddedToken& token : added) {
    if (token.normalized) token.pattern = WordPiece::normalize(token.content);
  }
  set_added(added);

  continuations_.reserve(static_cast<std::size_t>(vocabulary_.size()));
  for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string_view token = vocabulary_.token(id).value_or("");
    longest_piece_ = std::max(longest_piece_, token.size());
    // Of duplicate tokens, only the id that the vocabulary finds counts.
    if (token.starts_with(kContinuation) && vocabulary_.find(token) == id) {
      continuations_.emplace(token.substr(kContinuation.size()), id);
    }
  }
}

void WordPiece::append_word(std::string_view text, std::size_t characters,
                            std::vector<std::int32_t>& ids) const {
  const std::size_t first = ids.size();
  bool covered = characters <= kLongestWord;
  for (std::size_t begin = 0; covered && begin < text.size();) {
    std::optional<std::int32_t> found;
    std::size_t end = std::min(text.size(), begin + longest_piece_);
    for (; end > begin; --end) {
      // A piece must not end inside a character.
      if (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) continue;
      const std::string_view piece = text.substr(begin, end - begin);
      if (begin == 0) {
        found = vocabulary_.find(piece);
      } else if (const auto entry = continuations_.find(piece); entry != continuations_.end()) {
        found = entry->second;
      }
      if (found) break;
    }
    covered = found.has_value();
    if (covered) ids.push_back(*found);
    begin = end;
  }
  if (!covered) {
    ids.resize(first);
    ids.push_back(unknown_);
  }
}

std::string WordPiece::normalize(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    normalize_character(next_code_point(text, position), options_,
                        [&](char32_t c) { append_utf8(c, result); });
  }
  return result;
}

void WordPiece::append(std::string_view text, std::vector<std::int32_t>& ids) const {
  each_word(text, options_, [&](std::string_view word, std::size_t characters) {
    append_word(word, characters, ids);
  });
}

std::string WordPiece::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string text;
  for (const std::int32_t id : ids) {
    const AddedToken* added = added_token(id);
    if (added != nullptr && added->special && skip_special) continue;
    const auto token = added != nullptr ? std::string_view(added->content) : vocabulary_.token(id);
    if (!token) continue;
    if (token->starts_with(kContinuation) && !text.empty()) {
      text += token->substr(kContinuation.size());
    } else {
      if (!text.empty()) text += ' ';
      text += *token;
    }
  }
  // Hugging Face's cleanup of English that was split at punctuation.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kCleaned{{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const auto& [from, to] : kCleaned) {
    for (std::size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

}  // namespace petlab::trainer
