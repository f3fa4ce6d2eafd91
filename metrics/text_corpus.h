#pragma once

#include <cstddef>
#include <cstdint>
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

/// What InputError says of a text that is no UTF-8 from `offset` on, which `where` names.
std::string invalid_utf8(std::string_view where, std::string_view text, std::size_t offset);

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
