#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace petlab::fetch {

/// Takes the members `prefix/NAME` out of a zip archive, for each of `names`, to `folder/NAME`.
/// Throws Error naming the archive where one is missing or cannot be read or written.
void unpack_zip(const std::filesystem::path& archive, const std::string& prefix,
                const std::vector<std::string>& names, const std::filesystem::path& folder);

/// MRPC's train.tsv and dev.tsv as GLUE's own script makes them: the rows of `rows`, below its
/// header, whose two ids are a line of `dev_ids` go to dev.tsv, the others to train.tsv; spaces
/// around a row are taken away. Throws Error naming the file that is of another form.
void split_mrpc(const std::filesystem::path& dev_ids, const std::filesystem::path& rows,
                const std::filesystem::path& folder);

}  // namespace petlab::fetch
