#pragma once

#include <filesystem>
#include <ostream>

#include "sweeps/locations.h"
#include "trainer/compute/products.h"

namespace petlab::trainer {

/// The environment variable that names the libraries of products.
inline constexpr const char* kProductsVariable = "PETLAB_PRODUCTS";

/// Which libraries this process is to multiply with: those that PETLAB_PRODUCTS names
/// (parse_product_libraries); else those that were found faster on this processor with this
/// LibTorch before, in `cache_folder`/products.json; else they are timed now, and remembered there.
/// One process times at a time (on a file system without flock, several may; the first result is
/// kept), and what it finds holds for all: a trial that is resumed computes as it began. Where
/// nothing can be remembered (an empty or unwritable folder, a broken file) it is oneDNN, and `log`
/// says why. Throws std::invalid_argument for a PETLAB_PRODUCTS that names none.
ProductLibraries choose_product_libraries(const sweeps::Environment& environment,
                                          const std::filesystem::path& cache_folder,
                                          std::ostream& log);

}  // namespace petlab::trainer
