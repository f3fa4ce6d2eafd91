#pragma once

#include <filesystem>
#include <ostream>

#include "sweeps/locations.h"
#include "trainer/compute/products.h"

namespace petlab::trainer {

/// The environment variable that chooses the libraries for matrix products.
inline constexpr const char* kProductsVariable = "PETLAB_PRODUCTS";

/// Chooses the libraries for this process's matrix products: those that PETLAB_PRODUCTS names
/// (parse_product_libraries), or those stored in `cache_folder`/products.json for this processor
/// and LibTorch, or else the ones that measure faster now, which are then stored.
///
/// Processes measure one at a time (without flock several may; the first result is kept) and all
/// use the stored choice, so a resumed trial computes as it began. If nothing can be stored (an
/// empty or unwritable folder, a broken file), returns oneDNN and writes the reason to `log`.
/// Throws std::invalid_argument for an invalid PETLAB_PRODUCTS.
ProductLibraries choose_product_libraries(const sweeps::Environment& environment,
                                          const std::filesystem::path& cache_folder,
                                          std::ostream& log);

}  // namespace petlab::trainer
