#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace petlab::protocol {

/// A user's remark on a trial or a sweep, which affects no computation. A line of runs/<trial
/// id>/remarks.jsonl or runs/sweeps/<name>.remarks.
struct Remark {
  enum class What {
    tag,
    untag,  ///< removes the tag
    note,
  };
  What what = What::note;
  std::string text;  ///< the tag, or the note
  double time = 0;   ///< seconds since 1970
  bool operator==(const Remark&) const = default;
};

/// "tag", "untag", "note".
const char* to_string(Remark::What what);

/// Appends the lines, synced; the folder must exist. Throws base::Error.
void append_remarks(const std::filesystem::path& file, const std::vector<Remark>& remarks);
/// Returns the remarks in file order; none if the file is missing. Appends "FILE:LINE: why" to
/// `left_out` for each invalid line.
std::vector<Remark> read_remarks(const std::filesystem::path& file,
                                 std::vector<std::string>* left_out = nullptr);

inline constexpr std::size_t kLongestTag = 100;
inline constexpr std::size_t kLongestNote = std::size_t{64} << 10;
/// Returns why the remark is invalid; empty if it is valid. Tags are UTF-8, at most kLongestTag
/// bytes, without spaces, commas, quotes, comparison signs or a leading + or -, so that conditions
/// and lists can name them. Notes are UTF-8, not empty, and at most kLongestNote bytes.
std::string why_no_remark(const Remark& remark);

}  // namespace petlab::protocol
