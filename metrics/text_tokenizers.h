#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// The tokens of a line, as views of the line or of `storage`. Reused between lines.
struct Tokens {
  std::vector<std::string_view> tokens;
  std::string storage;
  std::string scratch;
};

/// Splits lines as a tokenizer of sacrebleu 2.6 does. Immutable and shared by threads.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;
  /// Replaces `out` by the tokens of `line`, which must be valid UTF-8 and outlive them. Tokens are
  /// never empty and contain no white space.
  virtual void tokenize(std::string_view line, Tokens& out) const = 0;
  /// The name in signatures, such as "13a".
  virtual std::string signature() const = 0;
};

/// A row of the table of BLEU's tokenizers.
struct TokenizerName {
  std::string_view name;
  std::string_view help;
};

/// 13a, none, char, intl, zh, spm, and sacrebleu's names for three SentencePiece models.
std::span<const TokenizerName> text_tokenizer_names();

/// Creates the tokenizer with that name and sacrebleu's preprocessing (optional lower-casing,
/// trailing white space removed). "spm", "flores101", "flores200" and "spBLEU-1K" need the
/// SentencePiece model file `spm_model`. The signature of spm is "spm-" and the first eight
/// hexadecimal digits of the file's SHA-256; that of the others is their name, and the caller must
/// pass the right model. Throws std::invalid_argument for an unknown name (with the nearest), for a
/// missing `spm_model` and for one that the tokenizer does not use; InputError if the file is
/// missing or not a model.
std::shared_ptr<const TextTokenizer> make_text_tokenizer(
    std::string_view name, bool lowercase,
    const std::optional<std::string>& spm_model = std::nullopt);

/// TER's options for texts; see metrics/ter.h.
struct TercomOptions {
  bool normalized = false;      // split punctuation, resolve entities (Western text)
  bool no_punct = false;        // drop punctuation
  bool asian_support = false;   // with normalized: split CJK; with no_punct: drop its punctuation
  bool case_sensitive = false;  // keep upper case
};
std::shared_ptr<const TextTokenizer> make_tercom_tokenizer(const TercomOptions& options);

/// chrF++'s words: splits at white space, then splits one ASCII punctuation mark off words longer
/// than one character: the last, else the first.
void chrf_words(std::string_view line, std::vector<std::string_view>& out);

}  // namespace petlab::metrics
