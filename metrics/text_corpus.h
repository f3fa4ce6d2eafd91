#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::metrics {

/// A hypothesis with its references. The views are valid as long as their batch.
struct Segment {
  std::string_view hypothesis;
  std::span<const std::string_view> references;  // the existing ones, at least one
};

/// A run of segments and the bytes they view. Reused between reads.
class SegmentBatch {
 public:
  std::size_t size() const { return reference_end_.size(); }
  Segment operator[](std::size_t index) const;
  /// The number of segments before the first of this batch.
  std::int64_t first() const { return first_; }
  /// Total size of the added texts.
  std::size_t bytes() const { return bytes_.size(); }

  void clear(std::int64_t first);
  /// Starts a segment. The bytes are copied.
  void add_hypothesis(std::string_view text);
  /// Adds a reference to the newest segment. The bytes are copied.
  void add_reference(std::string_view text);
  /// Sets the views. Call once after adding the last segment.
  void finish();

 private:
  std::int64_t first_ = 0;
  std::string bytes_;
  std::vector<std::size_t> ends_;           // of each text in bytes_, in the order of add_…()
  std::vector<std::size_t> reference_end_;  // for each segment: texts up to its last reference
  std::vector<std::string_view> texts_;
};

/// A source of segments. Reads are not thread-safe; evaluate() serialises them.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// Fills `batch` with the next segments, at most `limit`. An empty batch is the end. Throws
  /// InputError for problems with the input.
  virtual void read(SegmentBatch& batch, std::size_t limit) = 0;
  /// The name of a segment in messages, counted from 0: "segment 1", "hyp.txt:1".
  virtual std::string name_of(std::int64_t segment) const;
};

/// InputError's message for a text that is not UTF-8 from `offset` on; `where` names the text.
std::string invalid_utf8(std::string_view where, std::string_view text, std::size_t offset);

/// Texts in memory, for users of the library and for tests. Does not keep views.
class MemoryCorpus : public SegmentSource {
 public:
  using Stream = std::vector<std::optional<std::string>>;  // std::nullopt: a missing reference

  /// Throws InputError if there are no segments, a stream's length differs from that of the
  /// hypotheses, a segment has no reference, or a text is not UTF-8; std::invalid_argument without
  /// streams.
  MemoryCorpus(std::vector<std::string> hypotheses, std::vector<Stream> references);

  void read(SegmentBatch& batch, std::size_t limit) override;
  /// Returns to the first segment.
  void rewind() { next_ = 0; }
  std::size_t size() const { return hypotheses_.size(); }

 private:
  std::vector<std::string> hypotheses_;
  std::vector<Stream> references_;
  std::size_t next_ = 0;
};

}  // namespace petlab::metrics
