#include "trainer/tokenizers/train_vocabulary.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "trainer/files/error.h"
#include "trainer/files/utf8.h"
#include "trainer/tokenizers/byte_bpe.h"

namespace petlab::trainer {
namespace {

/// Iterates over the lines of files. Throws Error for unreadable files and invalid UTF-8.
class TextLines final : public sentencepiece::SentenceIterator {
 public:
  explicit TextLines(const std::vector<std::filesystem::path>& files) : files_(files) {
    open();
    Next();
  }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    while (!std::getline(stream_, line_)) {
      if (stream_.bad()) throw Error(files_[file_].string() + ": cannot be read completely");
      if (++file_ == files_.size()) {
        done_ = true;
        return;
      }
      open();
    }
    ++number_;
    if (line_.ends_with('\r')) line_.pop_back();
    if (const auto invalid = base::first_invalid_utf8(line_)) {
      throw Error(files_[file_].string() + ":" + std::to_string(number_) + ": byte " +
                  std::to_string(*invalid + 1) + " of the line is not UTF-8");
    }
  }

 private:
  void open() {
    stream_ = std::ifstream(files_[file_]);
    std::error_code unknown;
    if (!stream_ || !std::filesystem::is_regular_file(files_[file_], unknown)) {
      throw Error(files_[file_].string() + ": cannot be opened, must be a text file");
    }
    number_ = 0;
  }

  const std::vector<std::filesystem::path>& files_;
  std::size_t file_ = 0;
  std::ifstream stream_;
  std::int64_t number_ = 0;
  std::string line_;
  bool done_ = false;
};

/// The number of occurrences of each word. Sorted by word, so that the order is always the same.
using WordCounts = std::map<std::string, std::int64_t>;

/// Words and their counts, as input of SentencePiece's trainer.
class CountedWords final : public sentencepiece::SentenceIterator {
 public:
  explicit CountedWords(const WordCounts& counts) : at_(counts.begin()), end_(counts.end()) {
    write();
  }

  bool done() const override { return at_ == end_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    ++at_;
    write();
  }

 private:
  void write() {
    if (at_ != end_) line_ = at_->first + '\t' + std::to_string(at_->second);
  }

  WordCounts::const_iterator at_, end_;
  std::string line_;
};

[[noreturn]] void refuse(std::int64_t size, const std::string& why) {
  throw Error("no vocabulary of " + std::to_string(size) +
              " pieces can be made of the texts: " + why);
}

/// The pieces that byte-pair encoding merges from the words' characters, in the order of the
/// merges: at least as many as fit a vocabulary of `size`, if the words have that many. `begin`:
/// SentencePiece's mark precedes each word.
std::vector<std::string> merged_pieces(const WordCounts& counts, std::int64_t size, bool begin) {
  if (counts.empty()) return {};
  std::set<char32_t> characters;
  for (const auto& [word, count] : counts) {
    for (std::size_t at = 0; at < word.size();) characters.insert(next_code_point(word, at));
  }
  const std::int64_t others = static_cast<std::int64_t>(characters.size()) + 2;
  CountedWords words(counts);
  std::string model;
  const std::unordered_map<std::string, std::string> options{
      {"model_type", "bpe"},
      {"input_format", "tsv"},
      {"vocab_size", std::to_string(size + others)},
      {"hard_vocab_limit", "false"},
      {"character_coverage", "1.0"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", begin ? "true" : "false"},
      {"split_by_unicode_script", "false"},
      {"split_by_number", "false"},
      {"max_sentencepiece_length", "64"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"num_threads", "1"},
      {"minloglevel", "2"}};
  auto status = sentencepiece::SentencePieceTrainer::Train(options, &words, &model);
  if (!status.ok()) refuse(size, status.ToString());
  sentencepiece::SentencePieceProcessor processor;
  status = processor.LoadFromSerializedProto(model);
  if (!status.ok()) refuse(size, status.ToString());
  std::vector<std::string> pieces;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    const std::string& piece = processor.IdToPiece(id);
    std::size_t second = 0;
    next_code_point(piece, second);
    if (!processor.IsUnknown(id) && second < piece.size()) pieces.push_back(piece);
  }
  return pieces;
}

/// The merges of byte-pair encoding, in order.
class Merges {
 public:
  /// Finds the pair that becomes `piece` after the merges so far, and adds it as the next merge.
  /// Absent if those merges do not leave exactly two parts.
  std::optional<std::pair<std::string, std::string>> add(const std::string& piece) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t from = at;
      next_code_point(piece, at);
      parts.push_back(piece.substr(from, at - from));
    }
    while (parts.size() > 2) {
      std::size_t first = parts.size();
      std::size_t rank = ranks_.size();
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks_.find({parts[i], parts[i + 1]});
        if (found == ranks_.end() || found->second >= rank) continue;
        rank = found->second;
        first = i;
      }
      if (first == parts.size()) return std::nullopt;
      parts[first] += parts[first + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    }
    const std::pair<std::string, std::string> pair{parts.at(0), parts.at(1)};
    ranks_.emplace(pair, ranks_.size());
    return pair;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> ranks_;
};

constexpr std::string_view kWordBegin = "\u2581";  // SentencePiece's mark

}  // namespace

std::string train_wordpiece(const std::vector<std::filesystem::path>& texts, std::int64_t size,
                            const WordPieceOptions& options) {
  WordCounts counts;
  for (TextLines lines(texts); !lines.done(); lines.Next()) {
    for (std::string& word : wordpiece_words(lines.value(), options)) {
      // Skip it: it would look like the beginning of a word.
      if (word.find(kWordBegin) == std::string::npos) ++counts[std::move(word)];
    }
  }
  std::vector<std::string> pieces{options.pad_token, options.unk_token, options.cls_token,
                                  options.sep_token, options.mask_token};
  std::set<std::string> begins, within;
  for (const auto& [word, count] : counts) {
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t from = at;
      next_code_point(word, at);
      (from == 0 ? begins : within).insert(word.substr(from, at - from));
    }
  }
  pieces.insert(pieces.end(), begins.begin(), begins.end());
  for (const std::string& character : within) pieces.push_back("##" + character);
  if (static_cast<std::int64_t>(pieces.size()) > size) {
    refuse(size, "special tokens and characters alone are " + std::to_string(pieces.size()));
  }
  for (const std::string& merged : merged_pieces(counts, size, /*begin=*/true)) {
    if (static_cast<std::int64_t>(pieces.size()) == size) break;
    if (!merged.starts_with(kWordBegin)) {
      pieces.push_back("##" + merged);
    } else if (const std::string begin = merged.substr(kWordBegin.size());
               !begins.contains(begin)) {
      pieces.push_back(begin);
    }
  }
  std::string text;
  for (const std::string& piece : pieces) text += piece + '\n';
  return text;
}

ByteBpeVocabulary train_byte_bpe(const std::vector<std::filesystem::path>& texts,
                                 std::int64_t size) {
  WordCounts counts;
  for (TextLines lines(texts); !lines.done(); lines.Next()) {
    const std::string& line = lines.value();
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = gpt2_word_end(line, begin);
      ++counts[in_byte_alphabet(std::string_view(line).substr(begin, end - begin))];
      begin = end;
    }
  }
  std::vector<std::string> pieces{"<s>", "<pad>", "</s>", "<unk>"};
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = static_cast<char>(byte);
    pieces.push_back(in_byte_alphabet({&character, 1}));
  }
  if (static_cast<std::int64_t>(pieces.size()) + 1 > size) {
    refuse(size, "special tokens and bytes alone are " + std::to_string(pieces.size() + 1));
  }
  Merges merges;
  ByteBpeVocabulary vocabulary;
  vocabulary.merges_txt = "#version: 0.2\n";
  for (const std::string& piece : merged_pieces(counts, size, /*begin=*/false)) {
    if (static_cast<std::int64_t>(pieces.size()) + 1 == size) break;
    const auto pair = merges.add(piece);
    if (!pair) continue;
    vocabulary.merges_txt += pair->first + ' ' + pair->second + '\n';
    pieces.push_back(piece);
  }
  pieces.emplace_back("<mask>");
  nlohmann::ordered_json ids = nlohmann::ordered_json::object();
  for (std::size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id], id);
  vocabulary.vocab_json = ids.dump() + "\n";
  return vocabulary;
}

std::string train_sentencepiece(const std::vector<std::filesystem::path>& texts,
                                std::int64_t size) {
  TextLines lines(texts);
  std::string model;
  // One thread, because several would add their sums in varying order.
  const std::unordered_map<std::string, std::string> options{{"model_type", "unigram"},
                                                             {"vocab_size", std::to_string(size)},
                                                             {"hard_vocab_limit", "false"},
                                                             {"character_coverage", "1.0"},
                                                             {"pad_id", "0"},
                                                             {"eos_id", "1"},
                                                             {"unk_id", "2"},
                                                             {"bos_id", "-1"},
                                                             {"num_threads", "1"},
                                                             {"minloglevel", "2"}};
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  if (!status.ok()) refuse(size, status.ToString());
  return model;
}

}  // namespace petlab::trainer
