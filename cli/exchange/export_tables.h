#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/one_state.h"

namespace petlab::cli {

/// A file of `petlab db export FOLDER`.
struct ExportedTable {
  std::string name;  ///< file name
  std::int64_t rows = 0;
};

/// Writes results, history, configuration, attempts, sweeps and remarks of the trials of `sweeps`
/// (all of the database if empty) into a folder, one file each: `.csv`, in which texts that a
/// spreadsheet would evaluate are marked as texts, or `.json`, an array of objects. Numbers read
/// back bit for bit. Throws results::Error for the database and for files that cannot be written.
std::vector<ExportedTable> export_tables(const results::OneState& state,
                                         const std::filesystem::path& folder,
                                         const std::string& format,
                                         const std::vector<std::string>& sweeps);

}  // namespace petlab::cli
