#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweeps/task.h"

namespace petlab::trainer {

/// One row of a data file, reduced to the columns that a task uses.
struct DataRow {
  std::vector<std::string> texts;  // by TaskLayout::text_columns
  std::string target;
  bool target_is_number = false;  // a JSON number
  std::int64_t line = 0;          // the line in the file, from 1, where the row begins
  bool operator==(const DataRow&) const = default;
};

/// Splits the text of a file into rows. `file` names it in messages. Throws Error, naming file and
/// line, for invalid UTF-8 (with the byte), a wrong number of columns, a missing column, broken
/// quotes or a line that is not a JSON object, and, naming the file, for no rows. The layout's
/// format must be one with a single file.
std::vector<DataRow> parse_rows(const sweeps::TaskLayout& layout, std::string_view text,
                                const std::string& file);

/// A file of lines, as input of align_rows.
struct LineFile {
  std::string name;  // for messages
  std::string_view text;
};
/// Combines files line by line: those of the texts, and last that of the targets. Throws Error with
/// file and line for invalid UTF-8, with all files and their numbers of lines if these differ, and
/// with the first file if the files are empty.
std::vector<DataRow> align_rows(std::span<const LineFile> files);

/// Reads rows from a file on disk or, if the layout's format is aligned, from the files that its
/// name stands for (sweeps::file_parts). Throws Error for a missing file, with its name and
/// `source`, where the name comes from.
std::vector<DataRow> read_rows(const sweeps::TaskLayout& layout, const std::filesystem::path& file,
                               const std::string& source);

}  // namespace petlab::trainer
