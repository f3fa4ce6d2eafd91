#include "trainer/tokenizers/train_vocabulary.h"

#include <sentencepiece_trainer.h>

#include <fstream>
#include <string_view>
#include <unordered_map>

#include "base/utf8.h"
#include "trainer/files/error.h"

namespace petlab::trainer {
namespace {

/// The lines of files, one after the other. Throws Error for what cannot be read and is not UTF-8.
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
      if (stream_.bad()) throw Error(files_[file_].string() + ": cannot be read to its end");
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

}  // namespace

std::string train_sentencepiece(const std::vector<std::filesystem::path>& texts,
                                std::int64_t size) {
  TextLines lines(texts);
  std::string model;
  // One thread: sums of several would be added in another order each time.
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
  if (!status.ok()) {
    throw Error("no vocabulary of " + std::to_string(size) +
                " pieces can be made of the texts: " + status.ToString());
  }
  return model;
}

}  // namespace petlab::trainer
