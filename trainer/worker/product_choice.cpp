#include "trainer/worker/product_choice.h"

#include <fcntl.h>
#include <sys/file.h>
#include <torch/version.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/machine.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {
namespace {

constexpr std::uintmax_t kLargestMemory = 1U << 20U;

/// What a measurement holds for.
std::string this_combination() {
  return base::this_machine().processor + ", " + at::get_cpu_capability() + ", LibTorch " +
         TORCH_VERSION;
}

/// An object of texts; empty where there is no file. Throws base::Error.
nlohmann::ordered_json remembered_in(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return nlohmann::ordered_json::object();
  auto found = nlohmann::ordered_json::parse(base::read_file(file, kLargestMemory), nullptr,
                                             /*allow_exceptions=*/false);
  if (!found.is_object()) throw base::Error(file.string() + " is no JSON object; delete it");
  return found;
}

/// What was measured, or is now. Throws base::Error where it cannot be remembered.
ProductLibraries remembered_or_measured(const std::filesystem::path& folder, std::ostream& log) {
  const std::filesystem::path file = folder / "products.json";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path lock_file = folder / "products.lock";
  const base::FileDescriptor lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) throw base::Error(lock_file.string() + ": " + std::strerror(errno));
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) throw base::Error(lock_file.string() + ": " + std::strerror(errno));
  }
  nlohmann::ordered_json remembered = remembered_in(file);
  const std::string combination = this_combination();
  if (const auto found = remembered.find(combination); found != remembered.end()) {
    const auto libraries =
        found->is_string() ? parse_product_libraries(found->get<std::string>()) : std::nullopt;
    if (!libraries) {
      throw base::Error(file.string() + ": '" + combination + "' is " + found->dump() +
                        ", must name libraries of products; delete the file");
    }
    return *libraries;
  }
  const ProductLibraries measured = measure_product_libraries();
  remembered[combination] = to_string(measured);
  base::write_file_atomically(file, remembered.dump(2) + "\n");
  log << "products by " << to_string(measured) << ", which were measured to be faster here ("
      << file.string() << ")" << std::endl;
  return measured;
}

}  // namespace

ProductLibraries choose_product_libraries(const sweeps::Environment& environment,
                                          const std::filesystem::path& cache_folder,
                                          std::ostream& log) {
  if (const auto named = environment(kProductsVariable); named && !named->empty()) {
    if (const auto libraries = parse_product_libraries(*named)) return *libraries;
    throw std::invalid_argument(
        std::string(kProductsVariable) + " is '" + *named +
        "', must be onednn, blas, or three of them for the directions: forward, gradient of the "
        "input, gradient of the weight (onednn,blas,blas)");
  }
  if (cache_folder.empty()) return {};
  try {
    return remembered_or_measured(cache_folder, log);
  } catch (const base::Error& e) {
    log << "products by onednn: what is faster here cannot be remembered: " << e.what()
        << std::endl;
    return {};
  }
}

}  // namespace petlab::trainer
