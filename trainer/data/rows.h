#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/task.h"

namespace petlab::trainer {

/// The columns of a data file that a task uses, one row.
struct DataRow {
  std::vector<std::string> texts;  // by TaskLayout::text_columns
  std::string target;
  bool target_is_number = false;  // a JSON number
  std::int64_t line = 0;          // in the file, from 1: where the row begins
  bool operator==(const DataRow&) const = default;
};

/// Cuts the text of a file into rows. `file` stands for it in messages. Throws Error naming file
/// and line: not UTF-8 (with the byte), a wrong number of columns, a column that is not there,
/// broken quotes, no JSON object; naming the file: no rows. The layout's format is one of those
/// with one file.
std::vector<DataRow> parse_rows(const sweeps::TaskLayout& layout, std::string_view text,
                                const std::string& file);

/// A file of lines as align_rows takes it.
struct LineFile {
  std::string name;  // for messages
  std::string_view text;
};
/// Files of lines side by side: those of the texts, and last that of the targets. Throws Error
/// naming the file and line for what is not UTF-8, all files with their numbers of lines where
/// these differ, and the first where they hold no line.
std::vector<DataRow> align_rows(std::span<const LineFile> files);

/// Either of a file on disk, of the files that its name stands for where the layout's format is
/// aligned (sweeps::file_parts). A missing file is an Error naming it and `source`, where it comes
/// from.
std::vector<DataRow> read_rows(const sweeps::TaskLayout& layout, const std::filesystem::path& file,
                               const std::string& source);

}  // namespace petlab::trainer
