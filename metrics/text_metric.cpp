#include "metrics/text_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

#include "metrics/error.h"
#include "metrics/exact_sum.h"

namespace petlab::metrics {
namespace {

constexpr std::size_t kBatchSegments = 256;

// State shared by the threads of an evaluation. Batches are read and numbered under one lock. Sums
// are exact, so they are merged in any order. The sink receives batches in order.
class Evaluation {
 public:
  Evaluation(SegmentSource& source, const TextMetric& metric, const SegmentSink& sink)
      : source_(source),
        metric_(metric),
        sink_(sink),
        columns_(metric.statistics_size()),
        sums_(columns_) {}

  void work() noexcept {
    std::int64_t number = -1;
    try {
      const std::unique_ptr<SegmentScorer> scorer = metric_.scorer();
      SegmentBatch batch;
      std::vector<double> rows;
      std::vector<ExactSum> sums(columns_);
      std::int64_t segments = 0;
      std::int64_t references = 0;
      while (next(batch, number)) {
        rows.resize((sink_ ? batch.size() : 1) * columns_);
        for (std::size_t i = 0; i < batch.size(); ++i) {
          const Segment segment = batch[i];
          const std::span<double> row = std::span(rows).subspan(sink_ ? i * columns_ : 0, columns_);
          score(*scorer, segment, batch.first() + static_cast<std::int64_t>(i), row);
          for (std::size_t c = 0; c < columns_; ++c) sums[c].add(row[c]);
          const auto count = static_cast<std::int64_t>(segment.references.size());
          references = segments++ == 0 || references == count ? count : -1;
        }
        if (sink_) emit(batch, rows, number);
      }
      const std::lock_guard lock(mutex_);
      for (std::size_t c = 0; c < columns_; ++c) sums_[c].merge(sums[c]);
      if (segments > 0) {
        references_ = segments_ == 0 || references_ == references ? references : -1;
        segments_ += segments;
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_ || number < error_number_) {
        error_ = std::current_exception();
        error_number_ = number;
      }
      ended_ = true;
      turn_.notify_all();
    }
  }

  CorpusStatistics result() const {
    if (error_) std::rethrow_exception(error_);
    if (segments_ == 0) {
      throw InputError("the corpus is empty, expected at least one segment");
    }
    CorpusStatistics result;
    for (const ExactSum& sum : sums_) result.sums.push_back(sum.round());
    result.segments = segments_;
    result.references = references_;
    return result;
  }

 private:
  void score(SegmentScorer& scorer, const Segment& segment, std::int64_t index,
             std::span<double> statistics) const try {
    scorer.score(segment, statistics);
  } catch (const std::bad_alloc&) {
    std::size_t bytes = 0;
    for (const std::string_view reference : segment.references) bytes += reference.size();
    throw InputError(
        fmt::format("{}: not enough memory to compute {} of its {} bytes with {} of references; "
                    "split it, or allow the process more memory",
                    source_.name_of(index), metric_.name(), segment.hypothesis.size(), bytes));
  }

  // Sets `number` to the batch's number, even if reading it throws.
  bool next(SegmentBatch& batch, std::int64_t& number) {
    const std::lock_guard lock(reading_);
    number = batches_++;
    {
      const std::lock_guard state(mutex_);
      if (ended_) return false;
    }
    source_.read(batch, kBatchSegments);
    if (batch.size() > 0) return true;
    const std::lock_guard state(mutex_);
    ended_ = true;
    return false;
  }

  void emit(const SegmentBatch& batch, std::span<const double> rows, std::int64_t number) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return emitted_ == number || error_; });
    if (emitted_ != number) return;
    lock.unlock();  // only this thread has the turn
    for (std::size_t i = 0; i < batch.size(); ++i) {
      sink_(batch.first() + static_cast<std::int64_t>(i), batch[i],
            rows.subspan(i * columns_, columns_));
    }
    lock.lock();
    ++emitted_;
    turn_.notify_all();
  }

  SegmentSource& source_;
  const TextMetric& metric_;
  const SegmentSink& sink_;
  const std::size_t columns_;

  std::mutex reading_;  // locked before mutex_
  std::int64_t batches_ = 0;

  std::mutex mutex_;
  std::condition_variable turn_;
  std::int64_t emitted_ = 0;
  bool ended_ = false;
  std::exception_ptr error_;
  std::int64_t error_number_ = 0;
  std::vector<ExactSum> sums_;
  std::int64_t segments_ = 0;
  std::int64_t references_ = 0;
};

}  // namespace

void Signature::add(std::string name, std::string short_name, std::string value) {
  parts_.push_back({std::move(name), std::move(short_name), std::move(value)});
}

std::string Signature::format() const {
  std::string text;
  for (const Part& part : parts_) {
    text.append(text.empty() ? "" : "|").append(part.name).append(":").append(part.value);
  }
  return text;
}

std::string Signature::format_short() const {
  std::string text;
  for (const Part& part : parts_) {
    text.append(text.empty() ? "" : "|").append(part.short_name).append(":").append(part.value);
  }
  return text;
}

void Signature::add_context(const SignatureContext& context) {
  add("nrefs", "#", context.references < 0 ? "var" : std::to_string(context.references));
  if (context.bootstrap > 0) add("bs", "bs", std::to_string(context.bootstrap));
  if (context.randomisation > 0) add("ar", "ar", std::to_string(context.randomisation));
  if (context.bootstrap > 0 || context.randomisation > 0) {
    add("seed", "rs", std::to_string(context.seed));
  }
}

CorpusStatistics evaluate(SegmentSource& source, const TextMetric& metric, int threads,
                          const SegmentSink& sink) {
  if (threads < 1) {
    throw std::invalid_argument("threads is " + std::to_string(threads) + ", must be at least 1");
  }
  Evaluation evaluation(source, metric, sink);
  {
    std::vector<std::jthread> helpers;
    for (int i = 1; i < threads; ++i) helpers.emplace_back([&evaluation] { evaluation.work(); });
    evaluation.work();
  }
  return evaluation.result();
}

std::vector<double> evaluate_segment(const TextMetric& metric, std::string_view hypothesis,
                                     std::span<const std::string_view> references) {
  std::vector<MemoryCorpus::Stream> streams;
  for (const std::string_view reference : references) streams.push_back({std::string(reference)});
  MemoryCorpus corpus({std::string(hypothesis)}, std::move(streams));
  return evaluate(corpus, metric).sums;
}

}  // namespace petlab::metrics
