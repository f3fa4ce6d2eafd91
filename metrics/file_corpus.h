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

/// Reads the lines of a UTF-8 file or stream in constant memory (of its longest line). A line ends
/// at "\n" only; the last one may lack it. CR and every other character stay in the line, as in
/// sacrebleu.
class LineReader {
 public:
  /// `path` is a file; `name` is what messages call it. Throws InputError where it cannot be
  /// opened.
  /// A file whose name ends in .gz, .bz2, .xz or .zst is read as what it holds.
  /// Lines that end with a carriage return alone are an InputError.
  explicit LineReader(const std::string& path);
  /// Reads from `stream`, which must outlive the reader.
  LineReader(std::istream& stream, std::string name);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  /// Skips a byte order mark at the beginning, which is text to sacrebleu but part of no label or
  /// number. Must come before the first read.
  void skip_byte_order_mark() { mark_expected_ = true; }

  /// The next line without its end, or std::nullopt after the last; the view holds until the next
  /// call. Throws InputError "NAME:LINE: invalid UTF-8 at byte B of the line (0xFF)", bytes counted
  /// from 1, for a failing read, and for a line that does not fit into memory.
  std::optional<std::string_view> next();
  /// The whole lines that are in memory, each with its "\n" (a last line without one gets it), at
  /// least one unless the file is at its end; for callers that parse lines as they find their ends.
  /// The bytes are not checked. The view holds until the next call of next() or ahead(); neither
  /// steps over it without skip().
  std::string_view ahead();
  /// Steps over the first `bytes` bytes of ahead(): `lines` whole lines.
  void skip(std::size_t bytes, std::int64_t lines);
  /// Lines given out or skipped so far.
  std::int64_t lines() const { return lines_; }
  const std::string& name() const { return name_; }

 private:
  bool refill();

  struct Input;
  std::unique_ptr<Input> input_;
  std::string name_;
  std::int64_t lines_ = 0;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not given out yet
  std::size_t end_ = 0;    // of what was read
  bool mark_expected_ = false;
};

/// Throws InputError that says how many lines each of the files has; reads them to their ends.
[[noreturn]] void refuse_line_counts(LineReader& hypotheses, std::span<LineReader> references);
/// Throws InputError for a file without any line.
[[noreturn]] void refuse_empty(const LineReader& file);

/// Line files side by side: hypotheses and one or more files of references. White space at the end
/// of a text is cut, as sacrebleu's command does. Streams of unknown length cost constant memory.
class FileCorpus : public SegmentSource {
 public:
  struct Options {
    // An empty line of references means that this segment lacks this reference; otherwise it is an
    // empty reference, as in sacrebleu.
    bool empty_is_missing = false;
    // Every line is a JSON string, which can hold line breaks.
    bool json_lines = false;
    // A line of references holds so many of them, parted by tabs; the last may have more tabs.
    std::int64_t tabs = 1;
  };

  /// Throws std::invalid_argument where `references` is empty.
  FileCorpus(LineReader hypotheses, std::vector<LineReader> references, Options options);
  FileCorpus(LineReader hypotheses, std::vector<LineReader> references);

  /// Throws InputError for an empty corpus, for a segment without any reference, for a line that is
  /// no JSON string though all must be or has too few references, and for line counts that differ
  /// (then it reads all files to their ends, to say which has how many lines). A batch ends early
  /// after a few MiB.
  void read(SegmentBatch& batch, std::size_t limit) override;
  /// The line of the hypotheses.
  std::string name_of(std::int64_t segment) const override;

 private:
  std::string_view text_of(std::string_view line, const LineReader& file);

  LineReader hypotheses_;
  std::vector<LineReader> references_;
  Options options_;
  std::string decoded_;  // of the JSON line that text_of() was given last
  bool ended_ = false;
};

}  // namespace petlab::metrics
