#include "metrics/classification.h"

#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

namespace petlab::metrics {
namespace {

void require_label(std::int64_t label, std::int64_t num_labels, const char* side,
                   std::int64_t element) {
  if (label >= 0 && label < num_labels) return;
  throw std::invalid_argument(fmt::format("{} label {} of element {} is outside the classes 0..{}",
                                          side, label, element, num_labels - 1));
}

void require_examples(const Confusion& confusion, const char* metric) {
  if (confusion.total() == 0) {
    throw std::invalid_argument(fmt::format("{} of no examples: at least one is needed", metric));
  }
}

std::int64_t f1_denominator(const Confusion& confusion, std::int64_t label) {
  return confusion.gold_total(label) + confusion.predicted_total(label);
}

double f1_of(const Confusion& confusion, std::int64_t label) {
  const std::int64_t denominator = f1_denominator(confusion, label);
  if (denominator == 0) return 0.0;
  return static_cast<double>(2 * confusion.count(label, label)) / static_cast<double>(denominator);
}

}  // namespace

Confusion::Confusion(std::int64_t num_labels) : num_labels_(num_labels) {
  if (num_labels < 1 || num_labels > kMaxLabels) {
    throw std::invalid_argument(
        fmt::format("the number of classes is {}, must be 1 to {}", num_labels, kMaxLabels));
  }
  counts_.assign(static_cast<std::size_t>(num_labels * (num_labels + 1)), 0);
}

Confusion::Confusion(std::span<const std::int64_t> gold, std::span<const std::int64_t> predicted,
                     std::int64_t num_labels)
    : Confusion(num_labels) {
  if (gold.size() != predicted.size()) {
    throw std::invalid_argument(
        fmt::format("{} gold labels and {} predictions: the numbers must be equal", gold.size(),
                    predicted.size()));
  }
  if (gold.empty()) throw std::invalid_argument("no examples: at least one is needed");
  const auto labels = static_cast<std::uint64_t>(num_labels);
  const std::uint64_t width = labels + 1;
  // Alternates between two tables, so that consecutive examples of one cell do not wait for each
  // other's store.
  std::vector<std::int64_t> odd(counts_.size(), 0);
  const std::size_t n = gold.size();
  bool bad = false;
  for (std::size_t i = 0; i < n; ++i) {
    const auto g = static_cast<std::uint64_t>(gold[i]);
    const auto p = static_cast<std::uint64_t>(predicted[i]);
    if (g >= labels || p >= labels) {
      bad = true;
      break;
    }
    ((i & 1) != 0 ? odd : counts_)[g * width + p]++;
  }
  if (bad) {
    for (std::size_t i = 0; i < n; ++i) {
      require_label(gold[i], num_labels, "gold", static_cast<std::int64_t>(i));
      require_label(predicted[i], num_labels, "predicted", static_cast<std::int64_t>(i));
    }
  }
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += odd[i];
  total_ = static_cast<std::int64_t>(n);
}

void Confusion::add(std::int64_t gold, std::int64_t predicted, std::int64_t times) {
  require_label(gold, num_labels_, "gold", total_);
  require_label(predicted, num_labels_, "predicted", total_);
  counts_[static_cast<std::size_t>(gold * (num_labels_ + 1) + predicted)] += times;
  total_ += times;
}

void Confusion::add_invalid(std::int64_t gold, std::int64_t times) {
  require_label(gold, num_labels_, "gold", total_);
  const std::int64_t column = num_labels_ == 2 ? 1 - gold : num_labels_;
  counts_[static_cast<std::size_t>(gold * (num_labels_ + 1) + column)] += times;
  total_ += times;
  invalid_ += times;
}

void Confusion::merge(const Confusion& other) {
  if (other.num_labels_ != num_labels_) {
    throw std::invalid_argument(fmt::format("counts over {} classes do not add to counts over {}",
                                            other.num_labels_, num_labels_));
  }
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  invalid_ += other.invalid_;
}

std::int64_t Confusion::count(std::int64_t gold, std::int64_t predicted) const {
  return counts_.at(static_cast<std::size_t>(gold * (num_labels_ + 1) + predicted));
}

std::int64_t Confusion::correct() const {
  std::int64_t sum = 0;
  for (std::int64_t label = 0; label < num_labels_; ++label) sum += count(label, label);
  return sum;
}

std::int64_t Confusion::gold_total(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t column = 0; column <= num_labels_; ++column) sum += count(label, column);
  return sum;
}

std::int64_t Confusion::predicted_total(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t row = 0; row < num_labels_; ++row) sum += count(row, label);
  return sum;
}

double accuracy(const Confusion& confusion) {
  require_examples(confusion, "accuracy");
  return static_cast<double>(confusion.correct()) / static_cast<double>(confusion.total());
}

double f1(const Confusion& confusion) {
  if (confusion.num_labels() != 2) {
    throw std::invalid_argument(fmt::format(
        "f1 needs two classes, found {}: f1-macro takes any number", confusion.num_labels()));
  }
  require_examples(confusion, "f1");
  return f1_of(confusion, 1);
}

double f1_macro(const Confusion& confusion) {
  require_examples(confusion, "f1-macro");
  double sum = 0;
  std::int64_t present = 0;
  for (std::int64_t label = 0; label < confusion.num_labels(); ++label) {
    if (f1_denominator(confusion, label) == 0) continue;
    sum += f1_of(confusion, label);
    present++;
  }
  return sum / static_cast<double>(present);
}

double matthews(const Confusion& confusion) {
  require_examples(confusion, "matthews");
  // Products of counts are exact in long double up to 4·10^9 examples.
  const long double n = static_cast<long double>(confusion.total());
  long double both = 0;
  long double gold_squares = 0;
  long double predicted_squares = 0;
  std::int64_t predicted_labels = 0;
  for (std::int64_t label = 0; label < confusion.num_labels(); ++label) {
    const std::int64_t predicted_here = confusion.predicted_total(label);
    const long double g = static_cast<long double>(confusion.gold_total(label));
    const long double p = static_cast<long double>(predicted_here);
    both += g * p;
    gold_squares += g * g;
    predicted_squares += p * p;
    predicted_labels += predicted_here;
  }
  const long double none = static_cast<long double>(confusion.total() - predicted_labels);
  predicted_squares += none * none;
  const long double covariance = static_cast<long double>(confusion.correct()) * n - both;
  const long double gold_variance = n * n - gold_squares;
  const long double predicted_variance = n * n - predicted_squares;
  if (gold_variance == 0 || predicted_variance == 0) return 0.0;
  return static_cast<double>(covariance /
                             (std::sqrt(gold_variance) * std::sqrt(predicted_variance)));
}

std::string_view convention_note(const Confusion& confusion, std::string_view metric) {
  if (metric == "f1" && confusion.num_labels() == 2 && f1_denominator(confusion, 1) == 0) {
    return "no example and no prediction is of class 1: f1 is 0 by convention";
  }
  if (metric == "matthews" && confusion.total() > 0) {
    bool constant = confusion.invalid() == confusion.total() && confusion.num_labels() != 2;
    for (std::int64_t label = 0; label < confusion.num_labels(); ++label) {
      constant = constant || confusion.gold_total(label) == confusion.total() ||
                 confusion.predicted_total(label) == confusion.total();
    }
    if (constant) {
      return "all examples or all predictions are of one class: matthews is 0 by convention";
    }
  }
  return {};
}

}  // namespace petlab::metrics
