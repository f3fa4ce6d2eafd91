#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// The tokens of one line; reused from line to line. They view the line or `storage`.
struct Tokens {
  std::vector<std::string_view> tokens;
  std::string storage;
  std::string scratch;
};

/// Splits lines as a tokenizer of sacrebleu 2.6 does. Immutable and shared by threads.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;
  /// Replaces `out` by the tokens of `line`, which must be valid UTF-8 and outlive them. No token
  /// is empty or contains white space.
  virtual void tokenize(std::string_view line, Tokens& out) const = 0;
  /// As the signature has it: "13a".
  virtual std::string signature() const = 0;
};

/// A row of the table of BLEU's tokenizers.
struct TokenizerName {
  std::string_view name;
  std::string_view help;
};

/// 13a, none, char, intl, zh, spm, and sacrebleu's names for three SentencePiece models.
std::span<const TokenizerName> text_tokenizer_names();

/// The tokenizer of that name, with sacrebleu's preprocessing (lower-casing if asked, trailing
/// white space cut). `spm_model` is the SentencePiece model file that "spm", "flores101",
/// "flores200" and "spBLEU-1K" need. The signature of spm is "spm-" and the first eight hexadecimal
/// digits of the file's SHA-256, that of the others their name: that the file is their model is the
/// caller's word. Throws std::invalid_argument for an unknown name (with the nearest), for one that
/// needs a model without one and for a model with another tokenizer; InputError for a model that is
/// missing or not one.
std::shared_ptr<const TextTokenizer> make_text_tokenizer(
    std::string_view name, bool lowercase,
    const std::optional<std::string>& spm_model = std::nullopt);

/// TER's options for texts; see metrics/ter.h.
struct TercomOptions {
  bool normalized = false;      // split punctuation, resolve entities (Western text)
  bool no_punct = false;        // drop punctuation
  bool asian_support = false;   // with normalized: split CJK; with no_punct: drop its punctuation
  bool case_sensitive = false;  // do not lower-case
};
std::shared_ptr<const TextTokenizer> make_tercom_tokenizer(const TercomOptions& options);

/// chrF++'s words: split at white space, then one ASCII punctuation mark is split off a word longer
/// than one character: the last, or else the first.
void chrf_words(std::string_view line, std::vector<std::string_view>& out);

}  // namespace petlab::metrics
