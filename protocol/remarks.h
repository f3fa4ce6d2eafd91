#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace petlab::protocol {

/// What the user remarks on a trial or a sweep; it decides nothing. A line of
/// runs/<trial id>/remarks.jsonl or runs/sweeps/<name>.remarks.
struct Remark {
  enum class What {
    tag,
    untag,  ///< takes the tag away again
    note,
  };
  What what = What::note;
  std::string text;  ///< the tag, or the note
  double time = 0;   ///< seconds since 1970
  bool operator==(const Remark&) const = default;
};

/// "tag", "untag", "note".
const char* to_string(Remark::What what);

/// Appends the lines and syncs them; the folder must be there. Throws base::Error.
void append_remarks(const std::filesystem::path& file, const std::vector<Remark>& remarks);
/// In the order of the file; nothing where there is none. `left_out`, where given, gets
/// "FILE:LINE: why" of each line that is not understood.
std::vector<Remark> read_remarks(const std::filesystem::path& file,
                                 std::vector<std::string>* left_out = nullptr);

inline constexpr std::size_t kLongestTag = 100;
inline constexpr std::size_t kLongestNote = std::size_t{64} << 10;
/// Why a text cannot be that: a tag is UTF-8 of some bytes without spaces, commas, quotes and signs
/// at its beginning, so that conditions and lists can name it; a note is UTF-8, not empty and not
/// too long. Empty: it can.
std::string why_no_remark(const Remark& remark);

}  // namespace petlab::protocol
