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

namespace petlab::metrics {

/// One hypothesis with its references. The views live as long as the batch they came in.
struct Segment {
  std::string_view hypothesis;
  std::span<const std::string_view> references;  // those that there are: at least one
};

/// A run of segments with the bytes that they view; reused from read to read.
class SegmentBatch {
 public:
  std::size_t size() const { return reference_end_.size(); }
  Segment operator[](std::size_t index) const;
  /// The number of segments before this batch's first.
  std::int64_t first() const { return first_; }
  /// Of all texts that were added.
  std::size_t bytes() const { return bytes_.size(); }

  void clear(std::int64_t first);
  /// Starts a segment. The bytes are copied.
  void add_hypothesis(std::string_view text);
  /// Adds a reference to the newest segment. The bytes are copied.
  void add_reference(std::string_view text);
  /// Fixes the views; called once, after the last segment was added.
  void finish();

 private:
  std::int64_t first_ = 0;
  std::string bytes_;
  std::vector<std::size_t> ends_;           // of every text in bytes_, in order of adding
  std::vector<std::size_t> reference_end_;  // for each segment: texts up to its last reference
  std::vector<std::string_view> texts_;
};

/// Where segments come from. Reads are not thread-safe; evaluate() serialises them.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// Fills `batch` with the next segments, at most `limit`; none is the end. Throws InputError for
  /// what is wrong with the input.
  virtual void read(SegmentBatch& batch, std::size_t limit) = 0;
  /// What messages call a segment, counted from 0: "segment 1", "hyp.txt:1".
  virtual std::string name_of(std::int64_t segment) const;
};

/// Reads the lines of a UTF-8 file or stream in constant memory (of its longest line). A line ends
/// at "\n" only; the last one may lack it. CR and every other character stay in the line, as in
/// sacrebleu.
class LineReader {
 public:
  /// `path` is a file; `name` is what messages call it. Throws InputError where it cannot be
  /// opened.
  /// A file whose name ends in .gz, .bz2, .xz or .zst is read as what it holds.
  explicit LineReader(const std::string& path);
  /// Reads from `stream`, which must outlive the reader.
  LineReader(std::istream& stream, std::string name);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

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

/// Texts in memory; for callers of the library and for tests. Views are not kept.
class MemoryCorpus : public SegmentSource {
 public:
  using Stream = std::vector<std::optional<std::string>>;  // std::nullopt: a missing reference

  /// Throws InputError where there is no segment, a stream's length differs from the hypotheses', a
  /// segment has no reference, or a text is not UTF-8; std::invalid_argument without any stream.
  MemoryCorpus(std::vector<std::string> hypotheses, std::vector<Stream> references);

  void read(SegmentBatch& batch, std::size_t limit) override;
  /// Back to the first segment.
  void rewind() { next_ = 0; }
  std::size_t size() const { return hypotheses_.size(); }

 private:
  std::vector<std::string> hypotheses_;
  std::vector<Stream> references_;
  std::size_t next_ = 0;
};

}  // namespace petlab::metrics
