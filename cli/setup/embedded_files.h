#pragma once

#include <span>

#include "reports/builtin.h"

namespace petlab::cli {

/// Files of `petlab quickstart` that are compiled into the program: quickstart.yaml, samples.py.
std::span<const reports::BuiltinFile> embedded_files();

}  // namespace petlab::cli
