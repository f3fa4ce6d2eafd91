#include "metrics/spm_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/sha256.h"
#include "metrics/error.h"
#include "metrics/unicode.h"

namespace petlab::metrics {
namespace {

class SpmTokenizer : public TextTokenizer {
 public:
  SpmTokenizer(const std::string& file, bool lowercase, const std::string& name)
      : lowercase_(lowercase), signature_(name) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) {
      throw InputError(file + ": does not exist, expected a SentencePiece model");
    }
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!in) throw InputError(file + ": cannot be read, expected a SentencePiece model");
    const auto status = processor_.LoadFromSerializedProto(bytes);
    if (bytes.empty() || !status.ok()) {
      throw InputError(
          fmt::format("{}: is not a SentencePiece model ({} bytes)", file, bytes.size()));
    }
    if (!signature_.empty()) return;
    base::Sha256 hash;
    hash.add(bytes.data(), bytes.size());
    const auto digest = hash.finish_bytes();
    signature_ =
        fmt::format("spm-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
  }

  void tokenize(std::string_view line, Tokens& out) const override {
    out.tokens.clear();
    if (lowercase_) {
      lower_case(line, out.scratch);
      line = out.scratch;
    }
    line = trim_right(line);
    std::vector<std::string> pieces;
    const auto status = processor_.Encode(line, &pieces);
    if (!status.ok()) throw InputError("SentencePiece cannot encode a line: " + status.ToString());
    // sacrebleu joins the pieces with spaces and splits at all white space, which a piece may
    // contain.
    std::string joined;
    for (const std::string& piece : pieces) {
      joined += piece;
      joined += ' ';
    }
    out.storage = std::move(joined);
    split_white_space(out.storage, out.tokens);
  }
  std::string signature() const override { return signature_; }

 private:
  bool lowercase_;
  sentencepiece::SentencePieceProcessor processor_;
  std::string signature_;
};

}  // namespace

std::shared_ptr<const TextTokenizer> make_spm_tokenizer(const std::string& model_file,
                                                        bool lowercase, const std::string& name) {
  return std::make_shared<SpmTokenizer>(model_file, lowercase, name);
}

}  // namespace petlab::metrics
