#include "fetch/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <set>

#include "base/files.h"
#include "base/trimmed.h"
#include "fetch/error.h"

namespace petlab::fetch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 65536;
constexpr std::uintmax_t kMostRows = 256 << 20;

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;

void write_member(archive* from, const fs::path& zip, const fs::path& to) {
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  std::array<char, kBlock> block;
  for (;;) {
    const la_ssize_t got = archive_read_data(from, block.data(), block.size());
    if (got == 0) break;
    if (got < 0) {
      const char* const why = archive_error_string(from);
      throw Error(fmt::format("{}: {} cannot be extracted: {}", zip.string(),
                              to.filename().string(), why == nullptr ? "it is damaged" : why));
    }
    out.write(block.data(), got);
  }
  out.close();
  if (!out) throw Error(fmt::format("{}: cannot be written; is the disk full?", to.string()));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

void unpack_zip(const fs::path& zip, const std::string& prefix,
                const std::vector<std::string>& names, const fs::path& folder) {
  const Reader reader(archive_read_new(), &archive_read_free);
  if (!reader) throw Error("libarchive cannot be initialised");
  archive_read_support_format_zip(reader.get());
  const auto refuse = [&](const std::string& what) {
    const char* const why = archive_error_string(reader.get());
    throw Error(fmt::format("{}: {}{}{}", zip.string(), what, why == nullptr ? "" : ": ",
                            why == nullptr ? "" : why));
  };
  if (archive_read_open_filename(reader.get(), zip.c_str(), kBlock) != ARCHIVE_OK) {
    refuse("cannot be read as a zip archive");
  }
  std::set<std::string> missing(names.begin(), names.end());
  archive_entry* entry = nullptr;
  for (int found = 0; !missing.empty() &&
                      (found = archive_read_next_header(reader.get(), &entry)) != ARCHIVE_EOF;) {
    if (found != ARCHIVE_OK && found != ARCHIVE_WARN) refuse("cannot be read as a zip archive");
    const char* const path = archive_entry_pathname(entry);
    const std::string name = path == nullptr ? "" : path;
    if (!name.starts_with(prefix + "/") || archive_entry_filetype(entry) != AE_IFREG) continue;
    const auto wanted = missing.find(name.substr(prefix.size() + 1));
    if (wanted == missing.end()) continue;
    write_member(reader.get(), zip, folder / *wanted);
    missing.erase(wanted);
  }
  if (!missing.empty()) {
    throw Error(fmt::format("{}: {}/{} is missing", zip.string(), prefix, *missing.begin()));
  }
}

void split_mrpc(const fs::path& dev_ids, const fs::path& rows, const fs::path& folder) {
  const std::string ids = base::read_file(dev_ids, kMostRows);
  std::set<std::string, std::less<>> development;
  for (const std::string_view line : lines_of(ids)) {
    const std::string_view pair = base::trimmed(line);
    if (!pair.empty()) development.emplace(pair);
  }
  const std::string text = base::read_file(rows, kMostRows);
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty()) throw Error(fmt::format("{}: is empty, expected MRPC's rows", rows.string()));
  const std::string header = fmt::format("{}\n", base::trimmed(lines.front()));
  std::string train = header;
  std::string dev = header;
  for (std::size_t at = 1; at < lines.size(); ++at) {
    const std::string_view row = base::trimmed(lines[at]);
    // Columns: label, id, id, text, text.
    const auto first = row.find('\t');
    const auto second = first == row.npos ? first : row.find('\t', first + 1);
    const auto third = second == row.npos ? second : row.find('\t', second + 1);
    if (third == row.npos || std::count(row.begin(), row.end(), '\t') != 4) {
      throw Error(fmt::format("{}:{}: found {} columns, expected 5 of an MRPC row", rows.string(),
                              at + 1, 1 + std::count(row.begin(), row.end(), '\t')));
    }
    const std::string_view pair = row.substr(first + 1, third - first - 1);
    std::string& part = development.contains(pair) ? dev : train;
    part += row;
    part += '\n';
  }
  base::write_file_atomically(folder / "dev.tsv", dev);
  base::write_file_atomically(folder / "train.tsv", train);
}

}  // namespace petlab::fetch
