// Attention's inner loops, compared with the formulas in plain loops of doubles.
#include "trainer/compute/attention_kernels.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/trainer/files/near_numbers.h"
#include "trainer/compute/random_stream.h"

namespace petlab::trainer {
namespace {

template <typename T>
std::vector<T> of_type(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// The inputs of one sequence's attention. T is the type of the computation.
template <typename T>
struct Case {
  std::int64_t heads = 3, d_head = 5, queries = 7, tokens = 21, prefix_length = 4;
  std::vector<T> query, key, value, prefix_key, prefix_value, multipliers, output_gradient;
  double scale = 1;  // of kept probabilities with dropout
  std::int64_t window = -1;

  Case(std::int64_t wanted_queries, std::int64_t prefix, bool dropout, std::int64_t width = 5) {
    d_head = width;
    queries = wanted_queries;
    prefix_length = prefix;
    const std::int64_t d_model = heads * d_head;
    query = of_type<T>(normal_numbers(1, queries * d_model));
    key = of_type<T>(normal_numbers(2, tokens * d_model));
    value = of_type<T>(normal_numbers(3, tokens * d_model));
    prefix_key = of_type<T>(normal_numbers(4, prefix * d_model));
    prefix_value = of_type<T>(normal_numbers(5, prefix * d_model));
    output_gradient = of_type<T>(normal_numbers(6, queries * d_model));
    if (!dropout) return;
    std::vector<float> drawn(static_cast<std::size_t>(queries * heads * (prefix + tokens)));
    fill_dropout({.seed = 3, .purpose = Purpose::attention_dropout}, 0.25, drawn);
    multipliers = of_type<T>(drawn);
    scale = static_cast<double>(dropout_scale(0.25));
  }

  std::int64_t keys() const { return prefix_length + tokens; }
  bool sees(std::int64_t i, std::int64_t j) const {
    return window < 0 || j < prefix_length || std::abs(j - prefix_length - i) <= window;
  }
  SequenceAttention<T> sequence() const {
    SequenceAttention<T> all{heads,
                             d_head,
                             queries,
                             tokens,
                             prefix_length,
                             query.data(),
                             key.data(),
                             value.data(),
                             prefix_key.data(),
                             prefix_value.data()};
    all.window = window;
    return all;
  }
  const T* dropped() const { return multipliers.empty() ? nullptr : multipliers.data(); }
};

/// The output and the gradients of query, key, value and prefixes, computed by the formulas.
struct Plain {
  std::vector<double> output, query, key, value, prefix_key, prefix_value;
};

template <typename T>
Plain plain_attention(const Case<T>& of) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t d = of.heads * of.d_head;
  const auto row = [&](const std::vector<T>& prefix, const std::vector<T>& rows, std::int64_t j,
                       std::int64_t c) {
    return static_cast<double>(j < of.prefix_length ? prefix[at(j * d + c)]
                                                    : rows[at((j - of.prefix_length) * d + c)]);
  };
  Plain plain;
  plain.output.resize(of.query.size());
  plain.query.resize(of.query.size());
  std::vector<double> to_key(at(of.keys() * d)), to_value(at(of.keys() * d));
  const double root = std::sqrt(static_cast<double>(of.d_head));
  for (std::int64_t h = 0; h < of.heads; ++h) {
    for (std::int64_t i = 0; i < of.queries; ++i) {
      std::vector<double> p(at(of.keys())), kept(at(of.keys())), to_p(at(of.keys()));
      double sum = 0;
      for (std::int64_t j = 0; j < of.keys(); ++j) {
        if (!of.sees(i, j)) continue;
        double score = 0;
        for (std::int64_t c = h * of.d_head; c < (h + 1) * of.d_head; ++c) {
          score += static_cast<double>(of.query[at(i * d + c)]) * row(of.prefix_key, of.key, j, c);
        }
        p[at(j)] = std::exp(score / root);
        sum += p[at(j)];
      }
      double through = 0;
      for (std::int64_t j = 0; j < of.keys(); ++j) {
        p[at(j)] /= sum;
        const double factor =
            of.multipliers.empty()
                ? 1
                : static_cast<double>(of.multipliers[at((i * of.heads + h) * of.keys() + j)]);
        kept[at(j)] = p[at(j)] * factor;
        for (std::int64_t c = h * of.d_head; c < (h + 1) * of.d_head; ++c) {
          const double v = row(of.prefix_value, of.value, j, c);
          const auto g = static_cast<double>(of.output_gradient[at(i * d + c)]);
          plain.output[at(i * d + c)] += kept[at(j)] * v;
          to_value[at(j * d + c)] += kept[at(j)] * g;
          to_p[at(j)] += factor * g * v;
        }
        through += p[at(j)] * to_p[at(j)];
      }
      for (std::int64_t j = 0; j < of.keys(); ++j) {
        const double to_score = p[at(j)] * (to_p[at(j)] - through) / root;
        for (std::int64_t c = h * of.d_head; c < (h + 1) * of.d_head; ++c) {
          plain.query[at(i * d + c)] += to_score * row(of.prefix_key, of.key, j, c);
          to_key[at(j * d + c)] += to_score * static_cast<double>(of.query[at(i * d + c)]);
        }
      }
    }
  }
  const auto cut = [&](std::vector<double>& all, std::vector<double>& prefix) {
    prefix.assign(all.begin(), all.begin() + of.prefix_length * d);
    all.erase(all.begin(), all.begin() + of.prefix_length * d);
  };
  cut(to_key, plain.prefix_key);
  cut(to_value, plain.prefix_value);
  plain.key = to_key;
  plain.value = to_value;
  return plain;
}

template <typename T>
void check_attention(const Case<T>& of, VectorWidth vectors, double tolerance) {
  const Plain wanted = plain_attention(of);
  std::vector<T> output(of.query.size(), T{-9});
  std::vector<T> probabilities(
      static_cast<std::size_t>(of.heads * of.queries * probability_stride(of.keys())), T{-9});
  attention_forward(of.sequence(), of.dropped(), output.data(), probabilities.data(), vectors);
  check_near("output", output, wanted.output, tolerance);
  std::vector<T> query(of.query.size()), key(of.key.size()), value(of.value.size()),
      prefix_key(of.prefix_key.size()), prefix_value(of.prefix_value.size());
  attention_backward(
      of.sequence(), of.output_gradient.data(), probabilities.data(), static_cast<T>(of.scale),
      {query.data(), key.data(), value.data(), prefix_key.data(), prefix_value.data()}, vectors);
  check_near("query", query, wanted.query, tolerance);
  check_near("key", key, wanted.key, tolerance);
  check_near("value", value, wanted.value, tolerance);
  check_near("prefix key", prefix_key, wanted.prefix_key, tolerance);
  check_near("prefix value", prefix_value, wanted.prefix_value, tolerance);
}

TEST_CASE("attention and its gradients match the formulas", "[trainer][files]") {
  const VectorWidth vectors = GENERATE(VectorWidth::widest, VectorWidth::narrow);
  // Blocks have 6 rows, so 1, 0, 2, 3, 4 and 5 rows remain.
  for (const std::int64_t queries : {1, 6, 8, 21, 10, 17}) {
    for (const std::int64_t prefix : {0, 4}) {
      for (const bool dropout : {false, true}) {
        INFO(queries << " queries, prefix " << prefix << ", dropout " << dropout);
        // Shorter than a vector, and two vectors with a remainder.
        for (const std::int64_t d_head : {5, 37}) {
          check_attention(Case<float>(queries, prefix, dropout, d_head), vectors, 2e-5);
          check_attention(Case<double>(queries, prefix, dropout, d_head), vectors, 1e-12);
        }
      }
    }
  }
}

TEST_CASE("attention with a window matches the formulas", "[trainer][files]") {
  const VectorWidth vectors = GENERATE(VectorWidth::widest, VectorWidth::narrow);
  for (const std::int64_t window : {0, 3, 15, 100}) {
    for (const std::int64_t queries : {1, 8, 21}) {
      for (const std::int64_t prefix : {0, 4}) {
        for (const bool dropout : {false, true}) {
          INFO("window " << window << ", " << queries << " queries, prefix " << prefix
                         << ", dropout " << dropout);
          Case<float> single(queries, prefix, dropout, 37);
          Case<double> with_double(queries, prefix, dropout, 5);
          single.window = with_double.window = window;
          check_attention(single, vectors, 2e-5);
          check_attention(with_double, vectors, 1e-12);
        }
      }
    }
  }
}

TEST_CASE("keys and values are read by row number", "[trainer][files]") {
  for (const std::int64_t queries : {2, 21}) {
    const Case<float> of(queries, 4, false, 37);
    const std::int64_t d_model = of.heads * of.d_head;
    // Scatters the tokens among rows of NaN that must not be read.
    std::vector<std::int64_t> places;
    std::vector<float> key(static_cast<std::size_t>(2 * of.tokens * d_model), kNan), value = key;
    for (std::int64_t t = 0; t < of.tokens; ++t) {
      places.push_back(2 * ((t * 8) % of.tokens) + 1);
      std::copy_n(of.key.begin() + t * d_model, d_model, key.begin() + places.back() * d_model);
      std::copy_n(of.value.begin() + t * d_model, d_model, value.begin() + places.back() * d_model);
    }
    SequenceAttention<float> apart = of.sequence();
    apart.key = key.data();
    apart.value = value.data();
    apart.key_rows = places.data();
    std::vector<float> together(of.query.size()), found(of.query.size());
    std::vector<float> probabilities(
        static_cast<std::size_t>(of.heads * of.queries * probability_stride(of.keys())));
    attention_forward(of.sequence(), nullptr, together.data(), probabilities.data());
    attention_forward(apart, nullptr, found.data(), probabilities.data());
    CHECK(found == together);
  }
}

TEST_CASE("NaN and infinity in a query give NaN in its output only", "[trainer][files]") {
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    Case<float> of(6, 4, false);
    of.query[0] = bad;  // head 0 of the first query
    std::vector<float> output(of.query.size());
    std::vector<float> probabilities(
        static_cast<std::size_t>(of.heads * of.queries * probability_stride(of.keys())));
    attention_forward(of.sequence(), nullptr, output.data(), probabilities.data());
    CHECK(std::isnan(output[0]));
    CHECK(std::isfinite(output[static_cast<std::size_t>(of.d_head)]));
  }
}

}  // namespace
}  // namespace petlab::trainer
