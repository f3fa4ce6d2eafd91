#include "cli/scoring/score_columns.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <future>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/shown.h"
#include "base/trimmed.h"
#include "cli/scoring/score_files.h"
#include "metrics/error.h"
#include "metrics/file_corpus.h"
#include "metrics/t5_labels.h"

namespace petlab::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The position after a line end, "\n" or "\r\n"; nullptr if there is none.
const char* behind_line_end(const char* p) {
  if (*p == '\r') ++p;
  return *p == '\n' ? p + 1 : nullptr;
}

// Each column type has two parsers. plain() handles common lines directly in the reader's buffer:
// it returns the start of the next line, or nullptr for other lines. These go to any(), which
// handles all lines and throws for invalid ones. plain() accepts only ASCII, so that only lines for
// any() are checked for UTF-8.

struct Labels {
  using Value = std::int32_t;
  std::int64_t num_labels;

  const char* plain(const char* p, Value& value) const {
    constexpr int kMostDigits = 8;
    const char* const first = p;
    Value label = 0;
    for (; is_digit(*p) && p - first < kMostDigits; ++p) label = label * 10 + (*p - '0');
    if (p == first || label >= num_labels) return nullptr;
    value = label;
    return behind_line_end(p);
  }

  Value any(std::string_view line, const metrics::LineReader& file) const {
    const std::string_view text = base::trimmed(line);
    std::int64_t label = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
    if (text.empty() || end != text.data() + text.size() || error != std::errc() || label < 0 ||
        label >= num_labels) {
      throw metrics::InputError(fmt::format("{}:{}: found {}, expected a label from 0 to {}",
                                            file.name(), file.lines(), base::in_quotes(text),
                                            num_labels - 1));
    }
    return static_cast<Value>(label);
  }
};

struct Numbers {
  using Value = double;

  const char* plain(const char* p, Value& value) const {
    // Integers of this many digits and powers of ten up to 10^22 are exact doubles, so one division
    // rounds exactly as parsing the decimal does.
    constexpr std::ptrdiff_t kExactDigits = 15;
    constexpr std::array<double, kExactDigits + 1> kPowers = {
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    const char* const first = p;
    std::uint64_t all_digits = 0;
    const auto take_digits = [&] {
      const char* const start = p;
      for (; is_digit(*p); ++p) all_digits = all_digits * 10 + static_cast<unsigned>(*p - '0');
      return p - start;
    };
    std::ptrdiff_t digits = take_digits();
    std::ptrdiff_t fraction = 0;
    if (*p == '.') {
      ++p;
      fraction = take_digits();
      digits += fraction;
    }
    const char* const next = behind_line_end(p);
    if (digits == 0 || next == nullptr) return nullptr;
    if (digits <= kExactDigits) {
      value = static_cast<double>(all_digits) / kPowers[static_cast<std::size_t>(fraction)];
    } else if (std::from_chars(first, p, value).ec != std::errc()) {
      return nullptr;
    }
    if (negative) value = -value;
    return next;
  }

  Value any(std::string_view line, const metrics::LineReader& file) const {
    if (const auto value = metrics::parse_score_text(line)) return *value;
    throw metrics::InputError(fmt::format("{}:{}: found {}, expected a finite decimal number",
                                          file.name(), file.lines(),
                                          base::in_quotes(base::trimmed(line))));
  }
};

// Fills `values` until the file ends; returns the number of values read.
template <class Parser>
std::size_t read(metrics::LineReader& file, const Parser& parser,
                 std::span<typename Parser::Value> values) {
  std::size_t n = 0;
  while (n < values.size()) {
    const std::string_view block = file.ahead();
    if (block.empty()) break;
    const char* p = block.data();
    const char* const end = p + block.size();
    const std::size_t first = n;
    while (n < values.size() && p < end) {
      const char* const next = parser.plain(p, values[n]);
      if (next == nullptr) break;
      p = next;
      ++n;
    }
    file.skip(static_cast<std::size_t>(p - block.data()), static_cast<std::int64_t>(n - first));
    if (n < values.size() && p < end) {
      const std::string_view line = *file.next();
      values[n++] = parser.any(line, file);
    }
  }
  return n;
}

template <class Parser>
void for_each(const ScoreOptions& options, Streams streams, const Parser& parser,
              const ColumnsVisitor<typename Parser::Value>& visit) {
  if (options.references.size() != 1) {
    throw std::invalid_argument(fmt::format("--ref is given {} times, {} takes one",
                                            options.references.size(), options.metric));
  }
  metrics::LineReader hypotheses = open_lines(options.hypotheses, streams);
  metrics::LineReader references = open_lines(options.references.front(), streams);
  hypotheses.skip_byte_order_mark();
  references.skip_byte_order_mark();
  // Long enough to be worth starting a thread. Independent of the number of threads, so that the
  // same one of two invalid lines is reported.
  constexpr std::size_t kRun = 16384;
  const auto read_at_once = options.threads > 1 ? std::launch::async : std::launch::deferred;
  std::vector<typename Parser::Value> predicted(kRun);
  std::vector<typename Parser::Value> gold(kRun);
  for (;;) {
    auto gold_read =
        std::async(read_at_once, [&] { return read(references, parser, std::span(gold)); });
    const std::size_t n = read(hypotheses, parser, std::span(predicted));
    if (gold_read.get() != n) {
      metrics::refuse_line_counts(hypotheses, std::span(&references, 1));
    }
    if (n == 0) break;
    visit(std::span(predicted).first(n), std::span(gold).first(n));
  }
  if (hypotheses.lines() == 0) metrics::refuse_empty(hypotheses);
}

}  // namespace

void for_each_labels(const ScoreOptions& options, Streams streams, std::int64_t num_labels,
                     const ColumnsVisitor<std::int32_t>& visit) {
  for_each(options, streams, Labels{num_labels}, visit);
}

void for_each_numbers(const ScoreOptions& options, Streams streams,
                      const ColumnsVisitor<double>& visit) {
  for_each(options, streams, Numbers{}, visit);
}

}  // namespace petlab::cli
