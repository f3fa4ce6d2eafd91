// Tensors in a mapped file's memory.
#include "trainer/compute/tensors.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/files/safetensors.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::TempDir;

namespace {

/// The file's pages in this process's resident memory, in KiB, from /proc/self/smaps.
std::int64_t resident_kib(const std::filesystem::path& file) {
  std::ifstream maps("/proc/self/smaps");
  std::int64_t kib = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string first;
    std::int64_t number = 0;
    words >> first;
    if (first.back() != ':') inside = line.ends_with(file.string());
    if (inside && first == "Rss:" && words >> number) kib += number;
  }
  return kib;
}

}  // namespace

TEST_CASE("released pages of a mapped file are read again", "[trainer]") {
  const TempDir folder;
  const auto file = folder.path() / "weights.safetensors";
  const std::int64_t numbers = 1 << 20;
  {
    const Tensor large = at::arange(numbers, at::kFloat);
    write_safetensors(file, {{"large", to_view(large)}, {"small", to_view(at::ones({2}))}});
  }
  const SafetensorsFile opened = SafetensorsFile::open(file);
  const Tensor large = to_tensor(opened.tensor("large"));
  const Tensor small = to_tensor(opened.tensor("small"));
  const double sum = large.sum(at::kDouble).item<double>();
  CHECK(resident_kib(file) >= 4 << 10);
  release_pages(large.detach());
  release_pages(small);
  // Pages shared with other tensors stay.
  CHECK(resident_kib(file) <= 64);
  CHECK(large.sum(at::kDouble).item<double>() == sum);
  CHECK(at::equal(small, at::ones({2})));
}

TEST_CASE("a widened weight keeps no pages of its file", "[trainer]") {
  const TempDir folder;
  const auto file = folder.path() / "weights.safetensors";
  const Tensor numbers = at::arange(1 << 21, at::kFloat).to(at::kBFloat16);
  write_safetensors(file, {{"short", to_view(numbers)}});
  const SafetensorsFile opened = SafetensorsFile::open(file);
  const Tensor wide = to_tensor(opened.tensor("short"), at::kFloat);
  CHECK(at::equal(wide, numbers.to(at::kFloat)));
  CHECK(resident_kib(file) <= 64);
  // A tensor that keeps its type uses the file's memory.
  const Tensor same = to_tensor(opened.tensor("short"), at::kBFloat16);
  CHECK(at::equal(same, numbers));
  CHECK(resident_kib(file) >= 4 << 10);
}

TEST_CASE("memory that is not a file's is not released", "[trainer]") {
  const Tensor ones = at::ones({1 << 16});
  release_pages(ones);
  CHECK(ones.sum().item<float>() == 1 << 16);
  std::vector<float> borrowed(1 << 16, 1.0F);
  const Tensor over = at::from_blob(borrowed.data(), {1 << 16});
  release_pages(over);
  TensorView held = to_view(at::ones({1 << 16}));
  const Tensor of_held = to_tensor(held);
  release_pages(of_held);
  release_pages(Tensor());
  CHECK(over.sum().item<float>() == 1 << 16);
  CHECK(of_held.sum().item<float>() == 1 << 16);
}
