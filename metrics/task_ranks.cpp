#include "metrics/task_ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "metrics/correlation.h"
#include "metrics/seed_statistics.h"

namespace petlab::metrics {
namespace {

using Variants = std::vector<std::size_t>;

// P(Q > q) for the range of `means` standard normal variables (the studentized range with infinite
// degrees of freedom, which Boost lacks). With z the largest of them:
//   means ∫ φ(z) [Φ(z)^(means-1) - (Φ(z) - Φ(z - q))^(means-1)] dz,
// where the difference is computed so that small probabilities keep their digits.
double studentized_range_tail(double q, std::int64_t means) {
  const boost::math::normal normal;
  const auto others = static_cast<double>(means - 1);
  const auto density = [&](double z) {
    const double below = boost::math::cdf(normal, z);
    const double out_of_range = boost::math::cdf(normal, z - q) / below;
    return boost::math::pdf(normal, z) * std::pow(below, others) *
           -std::expm1(others * std::log1p(-out_of_range));
  };
  // Beyond ten deviations the density is below 1e-22.
  constexpr double kTail = 10;
  constexpr unsigned kMaxDepth = 15;
  return static_cast<double>(means) * boost::math::quadrature::gauss_kronrod<double, 31>::integrate(
                                          density, -kTail, q + kTail, kMaxDepth, 1e-12);
}

double studentized_range_quantile(double tail, std::int64_t means) {
  std::uintmax_t iterations = 200;
  const auto [low, high] = boost::math::tools::bracket_and_solve_root(
      [&](double q) { return studentized_range_tail(q, means) - tail; }, 3.0, 2.0, false,
      boost::math::tools::eps_tolerance<double>(40), iterations);
  return std::midpoint(low, high);
}

void require_rank_question(std::int64_t variants, std::int64_t tasks, double level) {
  if (tasks < 1) throw std::invalid_argument("no tasks: ranks need at least 1");
  if (variants < 2) {
    throw std::invalid_argument(fmt::format("{} variants: ranks need at least 2", variants));
  }
  if (!(level > 0 && level < 1)) {
    throw std::invalid_argument(fmt::format("the level is {}, must be between 0 and 1", level));
  }
}

// Rank 1 is the highest score.
std::vector<double> ranks_of_task(const std::vector<double>& scores) {
  std::vector<double> negative(scores.size());
  double largest = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    negative[i] = -scores[i];
    largest = std::max(largest, std::fabs(scores[i]));
  }
  return average_ranks(with_exact_ties(std::move(negative), kEqualSpread * largest));
}

// Extends `chosen` by `candidates`, all linked with it, to every maximal set. `seen` are linked
// with all of it too, but their sets are already found (Bron and Kerbosch 1973). Without the pivot,
// 30 variants that do not differ would take 2^30 steps.
template <class Linked>
void add_cliques(const Variants& chosen, Variants candidates, Variants seen, const Linked& linked,
                 std::vector<Variants>& cliques) {
  if (candidates.empty() && seen.empty() && chosen.size() > 1) cliques.push_back(chosen);
  const auto linked_of = [&](std::size_t variant, const Variants& others) {
    Variants found;
    std::copy_if(others.begin(), others.end(), std::back_inserter(found),
                 [&](std::size_t other) { return other != variant && linked(variant, other); });
    return found;
  };
  Variants skipped;
  for (const Variants& pivots : {candidates, seen}) {
    for (const std::size_t pivot : pivots) {
      Variants found = linked_of(pivot, candidates);
      if (found.size() > skipped.size()) skipped = std::move(found);
    }
  }
  for (const std::size_t next : Variants(candidates)) {
    if (std::find(skipped.begin(), skipped.end(), next) != skipped.end()) continue;
    Variants larger = chosen;
    larger.push_back(next);
    add_cliques(larger, linked_of(next, candidates), linked_of(next, seen), linked, cliques);
    std::erase(candidates, next);
    seen.push_back(next);
  }
}

template <class Linked>
std::vector<Variants> cliques(std::size_t variants, const Linked& linked) {
  Variants all(variants);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<Variants> found;
  add_cliques({}, all, {}, linked, found);
  for (Variants& clique : found) std::sort(clique.begin(), clique.end());
  std::sort(found.begin(), found.end());
  return found;
}

// `ties` is the sum of t^3 - t over groups of t equal scores of a task.
void test_ranks(VariantRanks& ranks, double ties) {
  const auto k = static_cast<double>(ranks.average_ranks.size());
  const auto n = static_cast<double>(ranks.tasks);
  const double untied = n * (k * k * k - k);
  if (ties == untied) return;
  double spread = 0;
  for (const double rank : ranks.average_ranks) spread += std::pow(rank - (k + 1) / 2, 2);
  const double chi_squared = 12 * n / (k * (k + 1)) * spread / (1 - ties / untied);
  ranks.friedman = {chi_squared, boost::math::cdf(boost::math::complement(
                                     boost::math::chi_squared(k - 1), chi_squared))};
  if (ranks.tasks < 2) return;
  // 0 apart from rounding if all tasks have the same order.
  const double rest = n * (k - 1) - chi_squared;
  if (rest <= 1e-9 * n * k) {
    ranks.iman_davenport = {std::numeric_limits<double>::infinity(), 0};
    return;
  }
  const double f = (n - 1) * chi_squared / rest;
  ranks.iman_davenport = {f, boost::math::cdf(boost::math::complement(
                                 boost::math::fisher_f(k - 1, (k - 1) * (n - 1)), f))};
}

}  // namespace

double critical_difference(std::int64_t variants, std::int64_t tasks, double level) {
  require_rank_question(variants, tasks, level);
  const auto k = static_cast<double>(variants);
  return studentized_range_quantile(level, variants) / std::sqrt(2.0) *
         std::sqrt(k * (k + 1) / (6 * static_cast<double>(tasks)));
}

VariantRanks rank_variants(std::span<const std::vector<double>> scores, double level) {
  const std::size_t variants = scores.empty() ? 0 : scores.front().size();
  const auto k = static_cast<std::int64_t>(variants);
  VariantRanks ranks;
  ranks.tasks = static_cast<std::int64_t>(scores.size());
  ranks.critical_difference = critical_difference(k, ranks.tasks, level);
  ranks.average_ranks.assign(variants, 0);
  double ties = 0;
  for (std::size_t task = 0; task < scores.size(); ++task) {
    if (scores[task].size() != variants) {
      throw std::invalid_argument(
          fmt::format("task {} has {} scores, task 0 has {}", task, scores[task].size(), variants));
    }
    const std::vector<double> of_task = ranks_of_task(scores[task]);
    for (std::size_t i = 0; i < variants; ++i) {
      ranks.average_ranks[i] += of_task[i];
      // Each of t equal scores contributes t^2 - 1.
      const auto equal =
          static_cast<double>(std::count(of_task.begin(), of_task.end(), of_task[i]));
      ties += equal * equal - 1;
    }
  }
  // Sums of halves are exact, so equal averages are equal doubles.
  for (double& rank : ranks.average_ranks) rank /= static_cast<double>(ranks.tasks);
  test_ranks(ranks, ties);

  const double unit = std::sqrt(static_cast<double>(k * (k + 1)) / (12.0 * scores.size()));
  std::vector<double> wilcoxon;
  std::vector<double> a(scores.size());
  std::vector<double> b(scores.size());
  for (std::size_t i = 0; i < variants; ++i) {
    for (std::size_t j = i + 1; j < variants; ++j) {
      for (std::size_t task = 0; task < scores.size(); ++task) {
        a[task] = scores[task][i];
        b[task] = scores[task][j];
      }
      const double distance = std::fabs(ranks.average_ranks[i] - ranks.average_ranks[j]);
      const auto test = wilcoxon_signed_rank(a, b);
      wilcoxon.push_back(test ? test->p : 1);
      ranks.pairs.push_back(
          {.first = i,
           .second = j,
           .nemenyi_p =
               distance == 0 ? 1 : std::min(1.0, studentized_range_tail(distance / unit, k)),
           .wilcoxon_p = wilcoxon.back()});
    }
  }
  const std::vector<double> adjusted = holm_adjusted(wilcoxon);
  // Row i of the pairs starts at their index (i, i + 1).
  for (std::size_t pair = 0; pair < adjusted.size(); ++pair)
    ranks.pairs[pair].holm_p = adjusted[pair];
  const auto holm_p = [&](std::size_t i, std::size_t j) {
    const auto [low, high] = std::minmax(i, j);
    return adjusted[low * (2 * variants - low - 1) / 2 + high - low - 1];
  };
  ranks.nemenyi_groups = cliques(variants, [&](std::size_t i, std::size_t j) {
    return std::fabs(ranks.average_ranks[i] - ranks.average_ranks[j]) <= ranks.critical_difference;
  });
  ranks.wilcoxon_groups =
      cliques(variants, [&](std::size_t i, std::size_t j) { return holm_p(i, j) > level; });
  return ranks;
}

}  // namespace petlab::metrics
