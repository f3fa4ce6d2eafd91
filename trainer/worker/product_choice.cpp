#include "trainer/worker/product_choice.h"

#include <fcntl.h>
#include <sys/file.h>
#include <torch/version.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/machine.h"
#include "trainer/compute/torch.h"

namespace petlab::trainer {
namespace {

constexpr std::uintmax_t kLargestMemory = 1U << 20U;

/// The hardware and software that a measurement is valid for.
std::string this_combination() {
  return base::this_machine().processor + ", " + at::get_cpu_capability() + ", LibTorch " +
         TORCH_VERSION;
}

/// The stored choices, by combination. Members throw base::Error.
class Choices {
 public:
  explicit Choices(std::filesystem::path file) : file_(std::move(file)) {
    const std::optional<std::string> content = base::read_file_if_any(file_, kLargestMemory);
    if (!content) return;
    all_ = nlohmann::ordered_json::parse(*content, nullptr, /*allow_exceptions=*/false);
    if (!all_.is_object()) throw base::Error(file_.string() + " is not a JSON object; delete it");
  }

  std::optional<ProductLibraries> find(const std::string& combination) const {
    const auto found = all_.find(combination);
    if (found == all_.end()) return std::nullopt;
    const auto libraries =
        found->is_string() ? parse_product_libraries(found->get<std::string>()) : std::nullopt;
    if (!libraries) {
      throw base::Error(file_.string() + ": '" + combination + "' is " + found->dump() +
                        ", must name libraries of products; delete the file");
    }
    return libraries;
  }

  void add(const std::string& combination, const ProductLibraries& libraries) {
    all_[combination] = to_string(libraries);
    base::write_file_atomically(file_, all_.dump(2) + "\n");
  }

 private:
  std::filesystem::path file_;
  nlohmann::ordered_json all_ = nlohmann::ordered_json::object();
};

/// Returns the stored choice, or measures and stores it. Throws base::Error if it cannot be stored.
ProductLibraries remembered_or_measured(const std::filesystem::path& folder, std::ostream& log) {
  const std::filesystem::path file = folder / "products.json";
  const std::string combination = this_combination();
  if (const auto known = Choices(file).find(combination)) return *known;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path lock_file = folder / "products.lock";
  const base::FileDescriptor lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) throw base::Error(lock_file.string() + ": " + std::strerror(errno));
  // Some file systems lack locks (Lustre without flock, NFS without lockd). There, several
  // processes may measure at the same time, and the first result written is kept.
  while (::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  if (const auto known = Choices(file).find(combination)) return *known;
  const ProductLibraries measured = measure_product_libraries();
  Choices choices(file);
  if (const auto known = choices.find(combination)) return *known;
  choices.add(combination, measured);
  log << "matrix products by " << to_string(measured) << ", which was measured to be faster here ("
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
    log << "matrix products by onednn: the faster library cannot be recorded: " << e.what()
        << std::endl;
    return {};
  }
}

}  // namespace petlab::trainer
