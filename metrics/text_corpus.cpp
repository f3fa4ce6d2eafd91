#include "metrics/text_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/utf8.h"
#include "metrics/error.h"

namespace petlab::metrics {

std::string invalid_utf8(std::string_view where, std::string_view text, std::size_t offset) {
  return fmt::format("{}: invalid UTF-8 at byte {} of the line (0x{:02X})", where, offset + 1,
                     static_cast<unsigned char>(text[offset]));
}

Segment SegmentBatch::operator[](std::size_t index) const {
  const std::size_t from = index == 0 ? 0 : reference_end_[index - 1];
  return {texts_[from], std::span<const std::string_view>(texts_).subspan(
                            from + 1, reference_end_[index] - from - 1)};
}

void SegmentBatch::clear(std::int64_t first) {
  first_ = first;
  bytes_.clear();
  ends_.clear();
  reference_end_.clear();
  texts_.clear();
}

void SegmentBatch::add_hypothesis(std::string_view text) {
  bytes_.append(text);
  ends_.push_back(bytes_.size());
  reference_end_.push_back(ends_.size());
}

void SegmentBatch::add_reference(std::string_view text) {
  bytes_.append(text);
  ends_.push_back(bytes_.size());
  reference_end_.back() = ends_.size();
}

void SegmentBatch::finish() {
  std::size_t start = 0;
  for (const std::size_t end : ends_) {
    texts_.push_back(std::string_view(bytes_).substr(start, end - start));
    start = end;
  }
}

std::string SegmentSource::name_of(std::int64_t segment) const {
  return fmt::format("segment {}", segment + 1);
}

MemoryCorpus::MemoryCorpus(std::vector<std::string> hypotheses, std::vector<Stream> references)
    : hypotheses_(std::move(hypotheses)), references_(std::move(references)) {
  if (references_.empty()) {
    throw std::invalid_argument("found no references, expected at least one stream");
  }
  if (hypotheses_.empty()) {
    throw InputError("the corpus is empty, expected at least one segment");
  }
  const auto check = [](std::string_view name, std::size_t line, std::string_view text) {
    if (const auto offset = base::first_invalid_utf8(text)) {
      throw InputError(invalid_utf8(fmt::format("{}:{}", name, line + 1), text, *offset));
    }
  };
  for (std::size_t i = 0; i < hypotheses_.size(); ++i) check("hypotheses", i, hypotheses_[i]);
  for (std::size_t r = 0; r < references_.size(); ++r) {
    if (references_[r].size() != hypotheses_.size()) {
      throw InputError(fmt::format("references {} have {} segments, the hypotheses have {}", r + 1,
                                   references_[r].size(), hypotheses_.size()));
    }
  }
  for (std::size_t i = 0; i < hypotheses_.size(); ++i) {
    bool present = false;
    for (std::size_t r = 0; r < references_.size(); ++r) {
      if (!references_[r][i]) continue;
      check(fmt::format("references {}", r + 1), i, *references_[r][i]);
      present = true;
    }
    if (!present) throw InputError(fmt::format("segment {} has no reference", i + 1));
  }
}

void MemoryCorpus::read(SegmentBatch& batch, std::size_t limit) {
  batch.clear(static_cast<std::int64_t>(next_));
  for (; next_ < hypotheses_.size() && batch.size() < limit; ++next_) {
    batch.add_hypothesis(hypotheses_[next_]);
    for (const Stream& stream : references_) {
      if (stream[next_]) batch.add_reference(*stream[next_]);
    }
  }
  batch.finish();
}

}  // namespace petlab::metrics
