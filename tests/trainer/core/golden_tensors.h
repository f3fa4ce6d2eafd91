#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/support/catch.h"
#include "trainer/backbones/encoder.h"
#include "trainer/compute/tensors.h"
#include "trainer/files/safetensors.h"

namespace petlab::testing {

/// All tensors of a safetensors file, by name.
inline std::map<std::string, at::Tensor> read_tensors(const std::filesystem::path& file) {
  const auto opened = trainer::SafetensorsFile::open(file);
  std::map<std::string, at::Tensor> all;
  for (const std::string& name : opened.names()) {
    all.emplace(name, trainer::to_tensor(opened.tensor(name)));
  }
  return all;
}

inline nlohmann::json read_json(const std::filesystem::path& file) {
  std::ifstream stream(file);
  REQUIRE(stream.good());
  return nlohmann::json::parse(stream);
}

/// The largest differences that check_close found since the last reset: absolute, and as a share
/// of the tolerance.
struct WorstDifference {
  double difference = 0;
  double share = 0;
};
inline WorstDifference& worst_difference() {
  static WorstDifference worst;
  return worst;
}
inline void print_worst_difference(const std::string& what) {
  const WorstDifference worst = std::exchange(worst_difference(), {});
  std::printf("golden: %s: worst difference %.2g, worst share of the tolerance %.2g\n",
              what.c_str(), worst.difference, worst.share);
}

/// Checks |found - wanted| <= atol + rtol * |wanted| for each element.
inline void check_close(const std::string& name, const at::Tensor& found, const at::Tensor& wanted,
                        double atol, double rtol) {
  INFO(name);
  REQUIRE(found.defined());
  REQUIRE(found.numel() == wanted.numel());
  const at::Tensor b = wanted.detach().to(at::kDouble).flatten();
  const at::Tensor difference = (found.detach().to(at::kDouble).flatten() - b).abs();
  const at::Tensor allowed = b.abs() * rtol + atol;
  const double worst = (difference - allowed).max().item<double>();
  WorstDifference& so_far = worst_difference();
  so_far.difference = std::max(so_far.difference, difference.max().item<double>());
  so_far.share = std::max(so_far.share, (difference / allowed).max().item<double>());
  INFO("beyond the tolerance by " << worst);
  CHECK(worst <= 0);
}

/// Checks max|found - wanted| <= tolerance * max(1e-3, max|wanted|).
inline void check_relative(const std::string& name, const at::Tensor& found,
                           const at::Tensor& wanted, double tolerance) {
  const double largest = wanted.detach().to(at::kDouble).abs().max().item<double>();
  check_close(name, found, wanted, tolerance * std::max(1e-3, largest), 0);
}

}  // namespace petlab::testing
