// All of sacrebleu's tokenizers are in this file, because they are policies of the same split.
#include "metrics/text_tokenizers.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/nearest_word.h"
#include "metrics/spm_tokenizer.h"
#include "metrics/unicode.h"

namespace petlab::metrics {
namespace {

// How the split below treats a character.
enum Kind : std::uint8_t {
  kWord,
  kDigit,
  kSpace,
  kAlone,       // always a separate token
  kMark,        // a separate token, unless between digits
  kDash,        // a separate token after a digit
  kApostrophe,  // begins a token in "'s "
  kWide,        // a non-ASCII byte: the policy decides by code point
};

using KindTable = std::array<Kind, 256>;

constexpr KindTable ascii_kinds() {
  KindTable kinds{};
  for (int c = 0; c < 256; ++c) {
    Kind kind = c >= 0x80 ? kWide : is_white_space(static_cast<char32_t>(c)) ? kSpace : kWord;
    if (c >= '0' && c <= '9') kind = kDigit;
    kinds[static_cast<std::size_t>(c)] = kind;
  }
  return kinds;
}

constexpr bool is_ascii_punctuation(int c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
         (c >= 0x7B && c <= 0x7E);
}

// mteval-v13a: four passes of replacements, explained in the golden README.
constexpr KindTable western_kinds() {
  KindTable kinds = ascii_kinds();
  for (int c = 0; c < 0x80; ++c) {
    if (is_ascii_punctuation(c)) kinds[static_cast<std::size_t>(c)] = kAlone;
  }
  kinds['\''] = kWord;
  kinds['.'] = kinds[','] = kMark;
  kinds['-'] = kDash;
  return kinds;
}

struct Western {
  static constexpr bool kPadded = true;
  static constexpr KindTable kKinds = western_kinds();
  static Kind wide(char32_t c) { return is_white_space(c) ? kSpace : kWord; }
};

// sacrebleu compares strings, so two entries of its table for planes beyond 16 bits cover U+2001 to
// U+2A6D instead. Its scores depend on this.
constexpr bool counts_as_chinese(char32_t c) {
  constexpr char32_t kRanges[][2] = {
      {0x2001, 0x2A6D}, {0x2E80, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F}, {0x31A0, 0x31EF},
      {0x3200, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9},
      {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
  for (const auto& range : kRanges) {
    if (c >= range[0] && c <= range[1]) return true;
  }
  return false;
}

struct Chinese {
  static constexpr bool kPadded = false;
  static constexpr KindTable kKinds = western_kinds();
  static Kind wide(char32_t c) {
    if (is_white_space(c)) return kSpace;
    return counts_as_chinese(c) ? kAlone : kWord;
  }
};

Kind international_kind(char32_t c) {
  if (is_white_space(c)) return kSpace;
  switch (code_point_class(c)) {
    case kPunctuation:
      return kMark;
    case kSymbol:
      return kAlone;
    case kNumber:
      return kDigit;
    case kOther:
      break;
  }
  return kWord;
}

// mteval-v14 --international: the same passes over Unicode's categories.
constexpr KindTable international_kinds() {
  KindTable kinds = ascii_kinds();
  for (int c = 0; c < 0x80; ++c) {
    if (is_ascii_punctuation(c)) kinds[static_cast<std::size_t>(c)] = kMark;
  }
  for (const char symbol : {'$', '+', '<', '=', '>', '^', '`', '|', '~'}) {
    kinds[static_cast<std::size_t>(symbol)] = kAlone;
  }
  return kinds;
}

struct International {
  static constexpr bool kPadded = false;
  static constexpr KindTable kKinds = international_kinds();
  static Kind wide(char32_t c) { return international_kind(c); }
};

constexpr KindTable tercom_kinds() {
  KindTable kinds = western_kinds();
  kinds['\''] = kApostrophe;
  return kinds;
}

struct Tercom {
  static constexpr bool kPadded = true;
  static constexpr KindTable kKinds = tercom_kinds();
  static Kind wide(char32_t c) { return is_white_space(c) ? kSpace : kWord; }
};

// Tercom's blocks; one of its ranges ends at U+3F22 instead of U+32FF.
constexpr bool is_tercom_wide_punctuation(char32_t c) {
  return c == 0x3001 || c == 0x3002 || (c >= 0x3008 && c <= 0x3011) ||
         (c >= 0x3014 && c <= 0x301F) || (c >= 0xFF61 && c <= 0xFF65) || c == 0x30FB ||
         c == 0xFF0E || c == 0xFF0C || c == 0xFF1F || c == 0xFF1A || c == 0xFF1B || c == 0xFF01 ||
         c == 0xFF02 || c == 0xFF08 || c == 0xFF09;
}

constexpr bool is_tercom_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x31C0 && c <= 0x31EF) || (c >= 0x2E80 && c <= 0x2EFF) ||
         (c >= 0x3300 && c <= 0x33FF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE4F) || (c >= 0x3200 && c <= 0x3F22);
}

struct TercomAsian {
  static constexpr bool kPadded = true;
  static constexpr KindTable kKinds = tercom_kinds();
  static Kind wide(char32_t c) {
    if (is_white_space(c)) return kSpace;
    return is_tercom_ideograph(c) || is_tercom_wide_punctuation(c) ? kAlone : kWord;
  }
};

template <class Policy>
Kind kind_at(const char* p, const char*& behind) {
  const Kind kind = Policy::kKinds[static_cast<unsigned char>(*p)];
  behind = p;
  if (kind == kWide) return Policy::wide(next_code_point(behind));
  ++behind;
  return kind;
}

// Applies all replacement passes at once. A pass replaces from left to right without overlap, and a
// match consumes the character before or after a mark, so in a run of k marks only the last may
// remain unmatched: for even k if a character other than a digit precedes the run, for odd k if a
// digit or nothing does. The remaining mark stays attached if a digit follows it (or the end of a
// text that is not padded with spaces), and then also to a digit directly before it.
template <class Policy>
void split(std::string_view line, std::vector<std::string_view>& tokens) {
  const char* p = line.data();
  const char* const end = p + line.size();
  const char* start = p;          // of the current token
  bool first = !Policy::kPadded;  // p is at the beginning
  bool after_digit = false;
  const auto flush = [&](const char* to) {
    if (start != to) tokens.emplace_back(start, static_cast<std::size_t>(to - start));
  };
  while (p < end) {
    const char* behind;
    const Kind kind = kind_at<Policy>(p, behind);
    switch (kind) {
      case kWord:
      case kDigit:
        p = behind;
        after_digit = kind == kDigit;
        break;
      case kSpace:
        flush(p);
        p = start = behind;
        after_digit = false;
        break;
      case kDash:
        if (!after_digit) {
          p = behind;
          break;
        }
        [[fallthrough]];
      case kAlone:
        flush(p);
        tokens.emplace_back(p, static_cast<std::size_t>(behind - p));
        p = start = behind;
        after_digit = false;
        break;
      case kApostrophe:
        if (end - p >= 2 && p[1] == 's' &&
            (end - p == 2 || p[2] == ' ' ||
             Policy::kKinds[static_cast<unsigned char>(p[2])] == kAlone)) {
          flush(p);
          start = p;
        }
        p = behind;
        after_digit = false;
        break;
      case kMark: {
        const char* last = p;
        Kind next = kMark;
        const char* next_behind = behind;
        std::size_t run = 1;
        while (behind < end && (next = kind_at<Policy>(behind, next_behind)) == kMark) {
          last = behind;
          behind = next_behind;
          ++run;
        }
        const bool left_over = (run % 2 == 0) == (!first && !after_digit);
        const bool held = left_over && (behind == end ? !Policy::kPadded : next == kDigit);
        if (held && run == 1) {
          p = behind;  // stays part of the current token
        } else {
          flush(p);
          for (const char* const stop = held ? last : behind; p < stop;) {
            const char* const mark = p;
            next_code_point(p);
            tokens.emplace_back(mark, static_cast<std::size_t>(p - mark));
          }
          start = p;
          p = behind;
        }
        after_digit = false;
        break;
      }
      case kWide:
        break;  // never returned by kind_at
    }
    first = false;
  }
  flush(end);
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  std::size_t from = text.find(what);
  if (from == std::string::npos) return;
  std::size_t to = from;
  while (from < text.size()) {
    if (text.compare(from, what.size(), what) == 0) {
      text.replace(to, with.size(), with);
      to += with.size();
      from += what.size();
    } else {
      text[to++] = text[from++];
    }
  }
  text.resize(to);
}

void resolve_entities(std::string& text) {
  if (text.find('&') == std::string::npos) return;
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

// Lower-cases into out.storage if `lowercase` is set. `line` must not be a view of out.storage
// then.
std::string_view lowered(std::string_view line, bool lowercase, Tokens& out) {
  if (!lowercase) return line;
  lower_case(line, out.storage);
  return out.storage;
}

class Tokenizer13a : public TextTokenizer {
 public:
  explicit Tokenizer13a(bool lowercase) : lowercase_(lowercase) {}
  void tokenize(std::string_view line, Tokens& out) const override {
    out.tokens.clear();
    line = trim_right(lowered(line, lowercase_, out));
    if (line.find('&') != std::string_view::npos || line.find('\n') != std::string_view::npos ||
        line.find("<skipped>") != std::string_view::npos) {
      out.scratch = line;
      replace_all(out.scratch, "<skipped>", "");
      replace_all(out.scratch, "-\n", "");
      std::replace(out.scratch.begin(), out.scratch.end(), '\n', ' ');
      resolve_entities(out.scratch);
      line = out.scratch;
    }
    split<Western>(line, out.tokens);
  }
  std::string signature() const override { return "13a"; }

 private:
  bool lowercase_;
};

class TokenizerNone : public TextTokenizer {
 public:
  explicit TokenizerNone(bool lowercase) : lowercase_(lowercase) {}
  void tokenize(std::string_view line, Tokens& out) const override {
    out.tokens.clear();
    split_white_space(lowered(line, lowercase_, out), out.tokens);
  }
  std::string signature() const override { return "none"; }

 private:
  bool lowercase_;
};

class TokenizerChar : public TextTokenizer {
 public:
  explicit TokenizerChar(bool lowercase) : lowercase_(lowercase) {}
  void tokenize(std::string_view line, Tokens& out) const override {
    out.tokens.clear();
    line = lowered(line, lowercase_, out);
    const char* p = line.data();
    const char* const end = p + line.size();
    while (p < end) {
      const char* const start = p;
      if (is_white_space(next_code_point(p))) continue;
      out.tokens.emplace_back(start, static_cast<std::size_t>(p - start));
    }
  }
  std::string signature() const override { return "char"; }

 private:
  bool lowercase_;
};

class TokenizerInternational : public TextTokenizer {
 public:
  explicit TokenizerInternational(bool lowercase) : lowercase_(lowercase) {}
  void tokenize(std::string_view line, Tokens& out) const override {
    out.tokens.clear();
    split<International>(trim_right(lowered(line, lowercase_, out)), out.tokens);
  }
  std::string signature() const override { return "intl"; }

 private:
  bool lowercase_;
};

class TokenizerChinese : public TextTokenizer {
 public:
  explicit TokenizerChinese(bool lowercase) : lowercase_(lowercase) {}
  void tokenize(std::string_view line, Tokens& out) const override {
    out.tokens.clear();
    split<Chinese>(trim(lowered(line, lowercase_, out)), out.tokens);
  }
  std::string signature() const override { return "zh"; }

 private:
  bool lowercase_;
};

class TercomTokenizer : public TextTokenizer {
 public:
  explicit TercomTokenizer(const TercomOptions& options) : options_(options) {}
  void tokenize(std::string_view line, Tokens& out) const override {
    out.tokens.clear();
    line = lowered(trim_right(line), !options_.case_sensitive, out);
    if (options_.normalized) {
      if (line.find('&') != std::string_view::npos || line.find('\n') != std::string_view::npos) {
        out.scratch = line;
        replace_all(out.scratch, "\n-", "");
        std::replace(out.scratch.begin(), out.scratch.end(), '\n', ' ');
        resolve_entities(out.scratch);
        line = out.scratch;
      }
      if (options_.asian_support) {
        split<TercomAsian>(line, out.tokens);
      } else {
        split<Tercom>(line, out.tokens);
      }
    } else {
      split_white_space(line, out.tokens);
    }
    if (options_.no_punct) drop_punctuation(out);
  }
  std::string signature() const override { return "tercom"; }

 private:
  void drop_punctuation(Tokens& out) const {
    std::string kept;
    std::vector<std::size_t> ends;
    for (const std::string_view token : out.tokens) {
      const std::size_t before = kept.size();
      const char* p = token.data();
      const char* const end = p + token.size();
      while (p < end) {
        const char* const start = p;
        const char32_t c = next_code_point(p);
        const bool dropped = c < 0x80 ? std::string_view(".,?:;!\"()").find(static_cast<char>(c)) !=
                                            std::string_view::npos
                                      : options_.asian_support && is_tercom_wide_punctuation(c);
        if (!dropped) kept.append(start, p);
      }
      if (kept.size() > before) ends.push_back(kept.size());
    }
    out.tokens.clear();
    out.storage = std::move(kept);
    std::size_t start = 0;
    for (const std::size_t end : ends) {
      out.tokens.push_back(std::string_view(out.storage).substr(start, end - start));
      start = end;
    }
  }

  TercomOptions options_;
};

template <class Tokenizer>
std::shared_ptr<const TextTokenizer> make(bool lowercase) {
  return std::make_shared<Tokenizer>(lowercase);
}

struct Row {
  TokenizerName name;
  // Null if the tokenizer requires a SentencePiece model.
  std::shared_ptr<const TextTokenizer> (*make)(bool lowercase);
  // The place where sacrebleu stores the model of that name; empty: any model.
  std::string_view kept_by_sacrebleu = {};
};

constexpr Row kTokenizers[] = {
    {{"13a", "punctuation split off Western text, as mteval-v13a"}, make<Tokenizer13a>},
    {{"none", "white space only, for tokenized text"}, make<TokenizerNone>},
    {{"char", "every character"}, make<TokenizerChar>},
    {{"intl", "Unicode punctuation and symbols split off, as mteval-v14"},
     make<TokenizerInternational>},
    {{"zh", "every Chinese character, the rest as 13a"}, make<TokenizerChinese>},
    {{"spm", "pieces of a SentencePiece model (--spm-model FILE)"}, nullptr},
    {{"flores101", "pieces of the model of FLORES-101 (--spm-model FILE)"},
     nullptr,
     "sacrebleu_tokenizer_spm.model"},
    {{"flores200", "pieces of the model of FLORES-200 (--spm-model FILE)"},
     nullptr,
     "flores200sacrebleuspm"},
    {{"spBLEU-1K", "pieces of the model of spBLEU-1K (--spm-model FILE)"},
     nullptr,
     "spbleu-1k_tokenizer_spm.model"},
};

std::shared_ptr<const TextTokenizer> make_with_model(const Row& row, bool lowercase,
                                                     const std::optional<std::string>& model) {
  if (model) {
    return make_spm_tokenizer(*model, lowercase,
                              row.kept_by_sacrebleu.empty() ? "" : std::string(row.name.name));
  }
  const std::string name(row.name.name);
  if (row.kept_by_sacrebleu.empty()) {
    throw std::invalid_argument("tokenizer " + name +
                                " needs a SentencePiece model file (--spm-model FILE)");
  }
  throw std::invalid_argument("tokenizer " + name +
                              " needs its SentencePiece model (--spm-model FILE); sacrebleu keeps "
                              "it in ~/.sacrebleu/models/" +
                              std::string(row.kept_by_sacrebleu));
}

}  // namespace

std::span<const TokenizerName> text_tokenizer_names() {
  static const std::vector<TokenizerName> names = [] {
    std::vector<TokenizerName> all;
    for (const Row& row : kTokenizers) all.push_back(row.name);
    return all;
  }();
  return names;
}

std::shared_ptr<const TextTokenizer> make_text_tokenizer(
    std::string_view name, bool lowercase, const std::optional<std::string>& spm_model) {
  std::vector<std::string_view> known;
  for (const Row& row : kTokenizers) {
    if (row.name.name != name) {
      known.push_back(row.name.name);
      continue;
    }
    if (row.make == nullptr) return make_with_model(row, lowercase, spm_model);
    if (spm_model) {
      throw std::invalid_argument("tokenizer " + std::string(name) +
                                  " takes no SentencePiece model (" + *spm_model +
                                  "); tokenizer spm does");
    }
    return row.make(lowercase);
  }
  throw std::invalid_argument(base::unknown_word("tokenizer", name, known));
}

std::shared_ptr<const TextTokenizer> make_tercom_tokenizer(const TercomOptions& options) {
  return std::make_shared<TercomTokenizer>(options);
}

void chrf_words(std::string_view line, std::vector<std::string_view>& out) {
  // The position at which a word is split; 0: none.
  const auto cut = [](std::string_view word) -> std::size_t {
    const auto is_mark = [](char c) { return is_ascii_punctuation(static_cast<unsigned char>(c)); };
    const char* p = word.data();
    next_code_point(p);
    if (p == word.data() + word.size()) return 0;
    return is_mark(word.back()) ? word.size() - 1 : is_mark(word.front()) ? 1 : 0;
  };
  const std::size_t before = out.size();
  split_white_space(line, out);
  std::size_t cuts = 0;
  for (std::size_t i = before; i < out.size(); ++i) cuts += cut(out[i]) > 0 ? 1 : 0;
  // Works backwards, so that each word is moved only once.
  std::size_t from = out.size();
  std::size_t to = from + cuts;
  out.resize(to);
  while (from < to) {
    const std::string_view word = out[--from];
    const std::size_t at = cut(word);
    if (at > 0) out[--to] = word.substr(at);
    out[--to] = at > 0 ? word.substr(0, at) : word;
  }
}

}  // namespace petlab::metrics
