// The choice of a library for matrix products, and how a machine remembers it.
#include "trainer/compute/products.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"
#include "trainer/compute/operations.h"
#include "trainer/worker/product_choice.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::TempDir;

namespace {

constexpr ProductLibrary kBlas = ProductLibrary::blas;
constexpr ProductLibrary kOnednn = ProductLibrary::onednn;

/// Selects the product libraries during its lifetime.
class Using {
 public:
  explicit Using(const ProductLibraries& libraries) : before_(product_libraries()) {
    use_product_libraries(libraries);
  }
  ~Using() { use_product_libraries(before_); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  ProductLibraries before_;
};

sweeps::Environment environment_with(const std::string& products) {
  return [products](const std::string& name) -> std::optional<std::string> {
    if (name == kProductsVariable && !products.empty()) return products;
    return std::nullopt;
  };
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("product libraries are printed and parsed by name", "[trainer]") {
  CHECK(to_string(ProductLibraries()) == "onednn");
  CHECK(to_string({kBlas, kBlas, kBlas}) == "blas");
  CHECK(to_string({kOnednn, kBlas, kBlas}) == "onednn,blas,blas");
  for (const ProductLibraries& libraries :
       {ProductLibraries{}, ProductLibraries{kBlas, kBlas, kBlas},
        ProductLibraries{kOnednn, kBlas, kOnednn}, ProductLibraries{kBlas, kOnednn, kBlas}}) {
    CHECK((parse_product_libraries(to_string(libraries)) == libraries));
  }
  CHECK((parse_product_libraries("blas,blas,blas") == ProductLibraries{kBlas, kBlas, kBlas}));
  for (const char* const text :
       {"", "mkl", "onednn,blas", "onednn,blas,", "onednn,blas,blas,blas", ",,", "blas,"}) {
    INFO(text);
    CHECK_FALSE(parse_product_libraries(text));
  }
}

TEST_CASE("a linear layer and its gradients are the same with every library", "[trainer]") {
  at::manual_seed(5);
  const Tensor x = at::randn({33, 20}), weight = at::randn({17, 20}), bias = at::randn({17});
  const Tensor outer = at::randn({33, 17});
  const auto leaf = [](const Tensor& of) { return of.clone().requires_grad_(true); };
  const Tensor wanted = at::linear(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble));
  const Tensor to_x = at::mm(outer.to(at::kDouble), weight.to(at::kDouble));
  const Tensor to_weight = at::mm(outer.to(at::kDouble).t(), x.to(at::kDouble));
  const auto worst = [](const Tensor& a, const Tensor& b) {
    return (a.to(at::kDouble) - b).abs().max().item<double>();
  };
  for (const ProductLibrary forward : {kBlas, kOnednn}) {
    for (const ProductLibrary backward : {kBlas, kOnednn}) {
      const Using libraries({forward, backward, backward});
      INFO(to_string(product_libraries()));
      const Tensor leaf_x = leaf(x), leaf_weight = leaf(weight), leaf_bias = leaf(bias);
      const Tensor output = apply_linear(leaf_x, leaf_weight, leaf_bias);
      CHECK(worst(output, wanted) < 1e-5);
      CHECK(worst(apply_linear(x, weight, Tensor()), wanted - bias.to(at::kDouble)) < 1e-5);
      // Tests a gradient with unusual strides.
      (output.t() * outer.t()).sum().backward();
      CHECK(worst(leaf_x.grad(), to_x) < 1e-5);
      CHECK(worst(leaf_weight.grad(), to_weight) < 1e-5);
      CHECK(worst(leaf_bias.grad(), outer.to(at::kDouble).sum(0)) < 1e-5);
    }
  }
}

TEST_CASE("a short product of float32 matrices is the product of the rounded matrices",
          "[trainer]") {
  at::manual_seed(7);
  const bool strided = GENERATE(false, true);
  const Tensor x = strided ? at::randn({20, 33}).t() : at::randn({33, 20});
  const Tensor weight = at::randn({17, 20}), bias = 100 * at::randn({17});
  const Tensor outer = at::randn({33, 17});
  const auto short_of = [](const Tensor& of) { return of.to(at::kBFloat16).to(at::kDouble); };
  const Tensor leaf_x = x.detach().clone().requires_grad_(true);
  const Tensor leaf_weight = weight.clone().requires_grad_(true);
  const Tensor leaf_bias = bias.clone().requires_grad_(true);
  const Tensor output = apply_linear(leaf_x, leaf_weight, leaf_bias, /*short_product=*/true);
  output.backward(outer);
  CHECK(output.scalar_type() == at::kFloat);
  CHECK(leaf_x.grad().scalar_type() == at::kFloat);
  CHECK(leaf_weight.grad().scalar_type() == at::kFloat);
  // The bound is half a unit in the result's last place plus a small error of the sums. The bias
  // is not rounded.
  const auto near = [](const Tensor& found, const Tensor& exact, const Tensor& added) {
    const Tensor bound = exact.abs() * std::ldexp(1.0, -8) + 1e-4;
    const Tensor far = (found.to(at::kDouble) - (exact + added)).abs() > bound;
    return !far.any().item<bool>();
  };
  const Tensor none = at::zeros({}, at::kDouble);
  CHECK(near(output, at::mm(short_of(x), short_of(weight).t()), bias.to(at::kDouble)));
  CHECK(near(apply_linear(x, weight, {}, true), at::mm(short_of(x), short_of(weight).t()), none));
  CHECK(near(leaf_x.grad(), at::mm(short_of(outer), short_of(weight)), none));
  CHECK(near(leaf_weight.grad(), at::mm(short_of(outer).t(), short_of(x)), none));
  CHECK(at::equal(leaf_bias.grad(), outer.sum(0)));
}

TEST_CASE("a frozen weight's bfloat16 copies give the products of the rounded weight",
          "[trainer]") {
  at::manual_seed(9);
  // The rows of one text and of a batch; the widths are not multiples of a block.
  const std::int64_t rows = GENERATE(1, 5, 70);
  const Tensor x = at::randn({rows, 83}), weight = at::randn({45, 83}), bias = at::randn({45});
  const Tensor outer = at::randn({rows, 45});
  const ProductWeight copied(weight, /*short_products=*/true);
  const Tensor leaf_x = x.clone().requires_grad_(true), plain_x = x.clone().requires_grad_(true);
  const Tensor output = apply_linear(leaf_x, copied, bias);
  const Tensor wanted = apply_linear(plain_x, weight, bias, /*short_product=*/true);
  output.backward(outer);
  wanted.backward(outer);
  // Libraries may sum in another order: allows a unit in bfloat16's last place.
  const auto near = [](const Tensor& a, const Tensor& b) {
    return !((a - b).abs() > b.abs() * std::ldexp(1.0, -7) + 1e-4).any().item<bool>();
  };
  CHECK(near(output, wanted));
  CHECK(near(leaf_x.grad(), plain_x.grad()));
  const at::NoGradGuard no_grad;
  CHECK(at::equal(apply_linear(x, copied, bias), output));
  if (!multiplies_bf16()) return;
  CHECK(copied.forward().is_mkldnn());
  CHECK(copied.forward().scalar_type() == at::kBFloat16);
  // Copies of a ProductWeight share its bfloat16 copies.
  const ProductWeight shared = copied;
  CHECK(shared.forward().is_same(copied.forward()));
  CHECK(shared.gradient().is_same(copied.gradient()));
}

TEST_CASE("layers with the same input compute the same together as alone", "[trainer]") {
  at::manual_seed(11);
  const bool short_products = GENERATE(false, true);
  INFO("short products: " << short_products);
  const Tensor x = at::randn({70, 83});
  const Tensor bias = at::randn({45});
  const ProductWeight first(at::randn({45, 83}), short_products);
  const ProductWeight second(at::randn({31, 83}), short_products);
  const ProductWeight third(at::randn({45, 83}), short_products);
  const Tensor none;
  const Tensor together_x = x.clone().requires_grad_(true);
  const Tensor alone_x = x.clone().requires_grad_(true);
  const auto together = apply_linears(together_x, {{first, bias}, {second, none}, {third, bias}});
  const Tensor alone[] = {apply_linear(alone_x, first, bias), apply_linear(alone_x, second, none),
                          apply_linear(alone_x, third, bias)};
  REQUIRE(together.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(at::equal(together[i], alone[i]));
  // The third output has no gradient.
  const Tensor outer = at::randn({70, 45}), other = at::randn({70, 31});
  ((together[0] * outer).sum() + (together[1] * other).sum()).backward();
  ((alone[0] * outer).sum() + (alone[1] * other).sum()).backward();
  CHECK((together_x.grad() - alone_x.grad()).abs().max().item<float>() < 1e-4);
  const at::NoGradGuard no_grad;
  CHECK(at::equal(apply_linears(x, {{first, bias}})[0], together[0]));
}

TEST_CASE("two layers with a gelu between them equal their separate steps", "[trainer]") {
  at::manual_seed(13);
  const bool short_products = GENERATE(false, true);
  const std::int64_t rows = GENERATE(1, 70);
  INFO("short products: " << short_products << ", rows: " << rows);
  // NaN must stay NaN, and the largest and smallest numbers must keep their signs.
  Tensor x = at::randn({rows, 83});
  if (rows > 1) {
    x[0][5] = std::numeric_limits<float>::quiet_NaN();
    x[1].fill_(3e37);
    x[2].fill_(-1e-38);
  }
  const Tensor inner_bias = at::randn({45}), output_bias = at::randn({19});
  const ProductWeight inner(at::randn({45, 83}) / 9, short_products);
  const ProductWeight output(at::randn({19, 45}), short_products);
  const Tensor together_x = x.clone().requires_grad_(true);
  const Tensor steps_x = x.clone().requires_grad_(true);
  const Tensor none;
  const Tensor& bias = GENERATE_COPY(false, true) ? output_bias : none;
  const Tensor together = apply_gelu_between(together_x, {inner, inner_bias}, {output, bias});
  const Tensor steps =
      apply_linear(apply_gelu(apply_linear(steps_x, inner, inner_bias)), output, bias);
  const auto same = [](const Tensor& a, const Tensor& b) {
    return at::equal(a.isnan(), b.isnan()) && at::equal(a.nan_to_num(0), b.nan_to_num(0));
  };
  CHECK(same(together, steps));
  const Tensor outer = at::randn({rows, 19});
  together.backward(outer);
  steps.backward(outer);
  // The derivative and its products are rounded.
  const Tensor away = (together_x.grad() - steps_x.grad()).abs().nan_to_num(0);
  CHECK(at::equal(together_x.grad().isnan(), steps_x.grad().isnan()));
  CHECK(away.max().item<float>() <= (short_products ? std::ldexp(10.F, -6) : 0));
  const at::NoGradGuard no_grad;
  CHECK(same(apply_gelu_between(x, {inner, inner_bias}, {output, bias}), together));
}

TEST_CASE("a trained weight has no copies", "[trainer]") {
  const Tensor weight = at::ones({3, 4}).requires_grad_(true);
  const ProductWeight product_weight(weight, /*short_products=*/true);
  const Tensor before = apply_linear(at::ones({1, 4}), product_weight, {});
  {
    const at::NoGradGuard no_grad;
    weight.mul_(2);
  }
  const Tensor after = apply_linear(at::ones({1, 4}), product_weight, {});
  CHECK(at::equal(after, 2 * before));
  after.sum().backward();
  CHECK(at::equal(weight.grad(), at::ones({3, 4})));
}

TEST_CASE("the environment selects the product libraries, and a mistake in it is reported",
          "[trainer]") {
  const TempDir folder;
  std::ostringstream log;
  CHECK((choose_product_libraries(environment_with("onednn,blas,onednn"), folder.path(), log) ==
         ProductLibraries{kOnednn, kBlas, kOnednn}));
  try {
    choose_product_libraries(environment_with("mkl"), folder.path(), log);
    FAIL("taken");
  } catch (const std::invalid_argument& e) {
    CHECK(contains(e.what(), "PETLAB_PRODUCTS is 'mkl', must be onednn"));
  }
  CHECK(log.str().empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a measured choice is kept", "[trainer]") {
  const TempDir home;
  const std::filesystem::path cache = home.path() / "cache";
  std::ostringstream log;
  const ProductLibraries measured = choose_product_libraries(environment_with(""), cache, log);
  CHECK(contains(log.str(), "by " + to_string(measured)));
  // Measuring alone does not change the libraries in use.
  CHECK((product_libraries() == ProductLibraries()));
  const auto kept = nlohmann::json::parse(testing::read_file(cache / "products.json"));
  REQUIRE(kept.size() == 1);
  CHECK(kept.begin().value() == to_string(measured));

  // The file takes precedence over a new measurement. Other processors' entries are kept.
  nlohmann::json changed = kept;
  changed[kept.begin().key()] = "blas,onednn,blas";
  changed["another processor"] = "blas";
  home.write("cache/products.json", changed.dump());
  log.str("");
  CHECK((choose_product_libraries(environment_with(""), cache, log) ==
         ProductLibraries{kBlas, kOnednn, kBlas}));
  CHECK(log.str().empty());
  nlohmann::json without = changed;
  without.erase(kept.begin().key());
  home.write("cache/products.json", without.dump());
  choose_product_libraries(environment_with(""), cache, log);
  CHECK(nlohmann::json::parse(testing::read_file(cache / "products.json")).size() == 2);
}

TEST_CASE("a kept choice is read without the lock", "[trainer]") {
  const TempDir home;
  const std::filesystem::path cache = home.path() / "cache";
  std::ostringstream log;
  choose_product_libraries(environment_with(""), cache, log);
  auto kept = nlohmann::json::parse(testing::read_file(cache / "products.json"));
  kept.begin().value() = "blas,onednn,blas";
  home.write("cache/products.json", kept.dump());
  std::filesystem::remove(cache / "products.lock");
  std::filesystem::create_directory(cache / "products.lock");
  log.str("");
  CHECK((choose_product_libraries(environment_with(""), cache, log) ==
         ProductLibraries{kBlas, kOnednn, kBlas}));
  CHECK(log.str().empty());
}

// The next case runs this one in a separate process.
TEST_CASE("on a file system without flock", "[.][unlocked]") {
  const char* const cache = std::getenv("PETLAB_TEST_FILE");
  REQUIRE(cache != nullptr);
  std::ostringstream log;
  const ProductLibraries measured = choose_product_libraries(environment_with(""), cache, log);
  CHECK(contains(log.str(), "which was measured to be faster here"));
  log.str("");
  CHECK((choose_product_libraries(environment_with(""), cache, log) == measured));
  CHECK(log.str().empty());
}

TEST_CASE("a choice is measured and kept on a file system without flock", "[trainer]") {
  const TempDir home;
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto result = testing::run_command(
      "PETLAB_TEST_FILE=" + home.path().string() +
      " LD_PRELOAD=" + testing::program("petlab-faults.so").string() +
      " ASAN_OPTIONS=verify_asan_link_order=0 PETLAB_TEST_FAULTS='fail program=" +
      program.filename().string() + " calls=flock error=ENOLCK' " + program.string() +
      " '[unlocked]'");
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "All tests passed"));
}

TEST_CASE("without a usable cache products use oneDNN, and the log says why", "[trainer]") {
  const TempDir home;
  std::ostringstream log;
  CHECK((choose_product_libraries(environment_with(""), {}, log) == ProductLibraries()));
  for (const char* const broken : {"", "[]", "{\"half", "\xff\xfe"}) {
    home.write("cache/products.json", broken);
    log.str("");
    CHECK((choose_product_libraries(environment_with(""), home.path() / "cache", log) ==
           ProductLibraries()));
    CHECK(contains(log.str(), "products.json is not a JSON object"));
    CHECK(testing::read_file(home.path() / "cache/products.json") == broken);
  }
  log.str("");
  home.write("file", "");
  CHECK((choose_product_libraries(environment_with(""), home.path() / "file", log) ==
         ProductLibraries()));
  CHECK(contains(log.str(), "file/products.lock"));
}
