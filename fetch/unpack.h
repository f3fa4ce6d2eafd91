#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace petlab::fetch {

/// Extracts the members `prefix/NAME` of a zip archive to `folder/NAME`, for each of `names`.
/// Throws Error with the archive's name if a member is missing or cannot be read or written.
void unpack_zip(const std::filesystem::path& archive, const std::string& prefix,
                const std::vector<std::string>& names, const std::filesystem::path& folder);

/// Creates MRPC's train.tsv and dev.tsv like GLUE's script: rows below the header of `rows` whose
/// two ids are a line of `dev_ids` go to dev.tsv, all others to train.tsv. Spaces around rows are
/// removed. Throws Error with the name of a file that has another format.
void split_mrpc(const std::filesystem::path& dev_ids, const std::filesystem::path& rows,
                const std::filesystem::path& folder);

}  // namespace petlab::fetch
