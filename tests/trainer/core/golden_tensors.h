#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

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

/// |found - wanted| <= atol + rtol * |wanted|, everywhere.
inline void check_close(const std::string& name, const at::Tensor& found, const at::Tensor& wanted,
                        double atol, double rtol) {
  INFO(name);
  REQUIRE(found.defined());
  REQUIRE(found.numel() == wanted.numel());
  const at::Tensor b = wanted.detach().to(at::kDouble).flatten();
  const at::Tensor excess =
      (found.detach().to(at::kDouble).flatten() - b).abs() - (b.abs() * rtol + atol);
  const double worst = excess.max().item<double>();
  INFO("beyond the tolerance by " << worst);
  CHECK(worst <= 0);
}

/// max|found - wanted| <= tolerance * max(1e-3, max|wanted|).
inline void check_relative(const std::string& name, const at::Tensor& found,
                           const at::Tensor& wanted, double tolerance) {
  const double largest = wanted.detach().to(at::kDouble).abs().max().item<double>();
  check_close(name, found, wanted, tolerance * std::max(1e-3, largest), 0);
}

}  // namespace petlab::testing
