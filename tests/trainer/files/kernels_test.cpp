// The kernels against the same formulas in plain loops of doubles.
#include "trainer/compute/kernels.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "trainer/compute/random_stream.h"

namespace petlab::trainer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normal_numbers(std::uint64_t parameter, std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  fill_normal(7, parameter, 1.0, values);
  return values;
}

template <typename T>
std::vector<T> of_type(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

template <typename T>
void check_near(const std::string& what, const std::vector<T>& found,
                const std::vector<double>& wanted, double tolerance) {
  INFO(what);
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO("at " << i);
    CHECK(std::abs(static_cast<double>(found[i]) - wanted[i]) <=
          tolerance * std::max(1.0, std::abs(wanted[i])));
  }
}

/// One sequence's attention with whatever it needs; T is the type that is computed in.
template <typename T>
struct Case {
  std::int64_t heads = 3, d_head = 5, queries = 7, tokens = 21, prefix_length = 4;
  std::vector<T> query, key, value, prefix_key, prefix_value, multipliers, output_gradient;
  double scale = 1;  // of dropout

  Case(std::int64_t wanted_queries, std::int64_t prefix, bool dropout) {
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
  SequenceAttention<T> sequence() const {
    return {heads,
            d_head,
            queries,
            tokens,
            prefix_length,
            query.data(),
            key.data(),
            value.data(),
            prefix_key.data(),
            prefix_value.data()};
  }
  const T* dropped() const { return multipliers.empty() ? nullptr : multipliers.data(); }
};

/// Output, and the gradients of query, key, value and prefixes, by the formulas.
struct Plain {
  std::vector<double> output, query, key, value, prefix_key, prefix_value;
};

template <typename T>
Plain plain_attention(const Case<T>& of) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t d = of.heads * of.d_head;
  const auto row = [&](const std::vector<T>& prefix, const std::vector<T>& own, std::int64_t j,
                       std::int64_t c) {
    return static_cast<double>(j < of.prefix_length ? prefix[at(j * d + c)]
                                                    : own[at((j - of.prefix_length) * d + c)]);
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
void check_attention(const Case<T>& of, double tolerance) {
  const Plain wanted = plain_attention(of);
  std::vector<T> output(of.query.size(), T{-9});
  std::vector<T> probabilities(
      static_cast<std::size_t>(of.heads * of.queries * probability_stride(of.keys())), T{-9});
  attention_forward(of.sequence(), of.dropped(), output.data(), probabilities.data());
  check_near("output", output, wanted.output, tolerance);
  std::vector<T> query(of.query.size()), key(of.key.size()), value(of.value.size()),
      prefix_key(of.prefix_key.size()), prefix_value(of.prefix_value.size());
  attention_backward(
      of.sequence(), of.output_gradient.data(), probabilities.data(), static_cast<T>(of.scale),
      {query.data(), key.data(), value.data(), prefix_key.data(), prefix_value.data()});
  check_near("query", query, wanted.query, tolerance);
  check_near("key", key, wanted.key, tolerance);
  check_near("value", value, wanted.value, tolerance);
  check_near("prefix key", prefix_key, wanted.prefix_key, tolerance);
  check_near("prefix value", prefix_value, wanted.prefix_value, tolerance);
}

TEST_CASE("attention and its gradients are those of the formula", "[trainer][files]") {
  for (const std::int64_t queries : {1, 6, 21}) {
    for (const std::int64_t prefix : {0, 4}) {
      for (const bool dropout : {false, true}) {
        INFO(queries << " queries, prefix " << prefix << ", dropout " << dropout);
        check_attention(Case<float>(queries, prefix, dropout), 2e-5);
        check_attention(Case<double>(queries, prefix, dropout), 1e-12);
      }
    }
  }
}

TEST_CASE("the norm of a sum and its gradient are those of the formula", "[trainer][files]") {
  const float eps = 1e-5F;
  for (const std::int64_t width : {1, 16, 37}) {
    constexpr std::int64_t kRows = 3;
    const auto n = static_cast<std::size_t>(kRows * width);
    const auto a = normal_numbers(1, kRows * width), b = normal_numbers(2, kRows * width);
    const auto weight = normal_numbers(3, width), bias = normal_numbers(4, width);
    const auto to_output = normal_numbers(5, kRows * width);
    std::vector<double> wanted(n), wanted_gradient(n);
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto w = static_cast<std::size_t>(width);
      std::vector<double> x(w), to_normalised(w);
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < w; ++i) {
        x[i] = static_cast<double>(a[r * w + i]) + static_cast<double>(b[r * w + i]);
        mean += x[i] / static_cast<double>(w);
      }
      for (const double value : x)
        variance += (value - mean) * (value - mean) / static_cast<double>(w);
      const double inverse = 1 / std::sqrt(variance + static_cast<double>(eps));
      double sum = 0, product = 0;
      for (std::size_t i = 0; i < w; ++i) {
        x[i] = (x[i] - mean) * inverse;
        wanted[r * w + i] = x[i] * static_cast<double>(weight[i]) + static_cast<double>(bias[i]);
        to_normalised[i] =
            static_cast<double>(to_output[r * w + i]) * static_cast<double>(weight[i]);
        sum += to_normalised[i] / static_cast<double>(w);
        product += to_normalised[i] * x[i] / static_cast<double>(w);
      }
      for (std::size_t i = 0; i < w; ++i) {
        wanted_gradient[r * w + i] = inverse * (to_normalised[i] - sum - x[i] * product);
      }
    }
    std::vector<float> output(n), again(n), normalised(n), inverse(kRows), gradient(n);
    add_norm_forward(kRows, width, a.data(), b.data(), weight.data(), bias.data(), eps,
                     output.data(), normalised.data(), inverse.data());
    add_norm_forward(kRows, width, a.data(), b.data(), weight.data(), bias.data(), eps,
                     again.data(), nullptr, nullptr);
    add_norm_backward(kRows, width, to_output.data(), weight.data(), normalised.data(),
                      inverse.data(), gradient.data());
    INFO("width " << width);
    check_near("output", output, wanted, 1e-5);
    check_near("output without what backward needs", again, wanted, 1e-5);
    // Of one number alone the deviation is 0, and what is left of it is rounding.
    if (width > 1) check_near("gradient", gradient, wanted_gradient, 1e-4);
  }
}

TEST_CASE("gelu and its derivative are those of the error function", "[trainer][files]") {
  std::vector<float> x;
  for (int i = -1200; i <= 1200; ++i) x.push_back(static_cast<float>(i) / 100);
  std::vector<float> output(x.size()), derivative(x.size()), alone(x.size());
  gelu_forward(static_cast<std::int64_t>(x.size()), x.data(), output.data(), derivative.data());
  gelu_forward(static_cast<std::int64_t>(x.size()), x.data(), alone.data(), nullptr);
  CHECK(alone == output);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto v = static_cast<double>(x[i]);
    const double phi = 0.5 * std::erfc(-v / std::sqrt(2.0));
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979323846);
    INFO("at " << v);
    CHECK(std::abs(static_cast<double>(output[i]) - v * phi) < 3e-7 * std::max(1.0, std::abs(v)));
    CHECK(std::abs(static_cast<double>(derivative[i]) - (phi + v * density)) < 1e-6);
  }
}

TEST_CASE("what is no number stays none on its way through the kernels", "[trainer][files]") {
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
  const std::vector<float> x{kNan, 1, -kNan, 0};
  std::vector<float> output(x.size()), derivative(x.size());
  gelu_forward(4, x.data(), output.data(), derivative.data());
  for (const std::size_t i : {0U, 2U}) {
    CHECK(std::isnan(output[i]));
    CHECK(std::isnan(derivative[i]));
  }
  CHECK(output[3] == 0);
}

}  // namespace
}  // namespace petlab::trainer
