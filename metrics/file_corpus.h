#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/text_corpus.h"

namespace petlab::metrics {

/// Reads the lines of a UTF-8 file or stream in constant memory (that of the longest line). Only
/// "\n" ends a line; the last line may lack it. CR and all other characters stay in the line, as in
/// sacrebleu.
class LineReader {
 public:
  /// `path` is a file; messages call it `name`. Files ending in .gz, .bz2, .xz or .zst are
  /// decompressed. Throws InputError if the file cannot be opened, and later for lines that end
  /// with a carriage return alone.
  explicit LineReader(const std::string& path);
  /// Reads from `stream`, which must outlive the reader.
  LineReader(std::istream& stream, std::string name);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  /// Skips a byte order mark at the beginning, which sacrebleu treats as text but labels and
  /// numbers cannot contain. Call before the first read.
  void skip_byte_order_mark() { mark_expected_ = true; }

  /// The next line without its end, or std::nullopt after the last; valid until the next call.
  /// Throws InputError "NAME:LINE: invalid UTF-8 at byte B of the line (0xFF)", bytes counted from
  /// 1, for read errors, and for lines that do not fit into memory.
  std::optional<std::string_view> next();
  /// The complete lines in memory, each with its "\n" (added if the last line lacks it), for
  /// callers that parse lines while looking for their ends. There is at least one unless the file
  /// has ended. The bytes are not validated. Valid until the next call of next() or ahead(); only
  /// skip() advances.
  std::string_view ahead();
  /// Advances by the first `bytes` bytes of ahead(), which are `lines` whole lines.
  void skip(std::size_t bytes, std::int64_t lines);
  /// Number of lines returned or skipped so far.
  std::int64_t lines() const { return lines_; }
  const std::string& name() const { return name_; }

 private:
  bool refill();

  struct Input;
  std::unique_ptr<Input> input_;
  std::string name_;
  std::int64_t lines_ = 0;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // start of the unread data
  std::size_t end_ = 0;    // end of the buffered data
  bool mark_expected_ = false;
};

/// Throws InputError with the number of lines of each file, which it reads to the end.
[[noreturn]] void refuse_line_counts(LineReader& hypotheses, std::span<LineReader> references);
/// Throws InputError for a file without lines.
[[noreturn]] void refuse_empty(const LineReader& file);

/// Line files read in parallel: hypotheses and one or more files of references. Trailing white
/// space is removed from texts, as in sacrebleu's command. Streams take constant memory.
class FileCorpus : public SegmentSource {
 public:
  struct Options {
    // If true, an empty line means that the segment lacks this reference; otherwise it is an empty
    // reference, as in sacrebleu.
    bool empty_is_missing = false;
    // Every line is a JSON string, which can contain line breaks.
    bool json_lines = false;
    // Number of tab-separated references per line; the last one may contain more tabs.
    std::int64_t tabs = 1;
  };

  /// Throws std::invalid_argument if `references` is empty.
  FileCorpus(LineReader hypotheses, std::vector<LineReader> references, Options options);
  FileCorpus(LineReader hypotheses, std::vector<LineReader> references);

  /// Throws InputError for an empty corpus, for a segment without references, for a line that is
  /// not a JSON string although required or has too few references, and for differing line counts
  /// (it then reads all files to the end, to report the counts). A batch ends early after a few
  /// MiB.
  void read(SegmentBatch& batch, std::size_t limit) override;
  /// The line number in the hypotheses.
  std::string name_of(std::int64_t segment) const override;

 private:
  std::string_view text_of(std::string_view line, const LineReader& file);

  LineReader hypotheses_;
  std::vector<LineReader> references_;
  Options options_;
  std::string decoded_;  // the last JSON line passed to text_of()
  bool ended_ = false;
};

}  // namespace petlab::metrics
