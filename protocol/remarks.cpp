#include "protocol/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/shown.h"
#include "base/utf8.h"
#include "protocol/record_lines.h"

namespace petlab::protocol {
namespace {

constexpr std::pair<Remark::What, const char*> kRemarks[] = {
    {Remark::What::tag, "tag"}, {Remark::What::untag, "untag"}, {Remark::What::note, "note"}};

}  // namespace

const char* to_string(Remark::What what) {
  for (const auto& [one, word] : kRemarks) {
    if (one == what) return word;
  }
  throw std::logic_error("no remark");
}

void append_remarks(const std::filesystem::path& file, const std::vector<Remark>& remarks) {
  for (const Remark& remark : remarks) {
    append_record(file, {{"v", 1}, {"time", remark.time}, {to_string(remark.what), remark.text}},
                  true);
  }
}

std::vector<Remark> read_remarks(const std::filesystem::path& file,
                                 std::vector<std::string>* left_out) {
  std::vector<Remark> remarks;
  std::vector<std::string> unread = each_record(file, [&](const RecordLine& line) {
    for (const auto& [what, word] : kRemarks) {
      if (!line.contains(word)) continue;
      const Remark remark{what, line.at(word).get<std::string>(), line.at("time").get<double>()};
      if (const std::string why = why_no_remark(remark); !why.empty()) {
        throw std::invalid_argument(why);
      }
      remarks.push_back(remark);
      return;
    }
    throw std::invalid_argument("it has no tag, untag or note");
  });
  if (left_out != nullptr) left_out->insert(left_out->end(), unread.begin(), unread.end());
  return remarks;
}

std::string why_no_remark(const Remark& remark) {
  const std::string& text = remark.text;
  const char* const what = remark.what == Remark::What::note ? "note" : "tag";
  const std::size_t longest = remark.what == Remark::What::note ? kLongestNote : kLongestTag;
  if (text.empty()) return fmt::format("found an empty {}, expected a text", what);
  if (text.size() > longest) {
    return fmt::format("found a {} of {} bytes, expected at most {}", what, text.size(), longest);
  }
  if (base::first_invalid_utf8(text)) return fmt::format("the {} is not UTF-8", what);
  if (remark.what == Remark::What::note) return {};
  constexpr std::string_view kNever = " ,'\"=<>!";
  const bool odd = std::any_of(text.begin(), text.end(), [&](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || kNever.find(c) != kNever.npos;
  });
  if (odd || text.front() == '+' || text.front() == '-' || text == "null") {
    return fmt::format(
        "found the tag {}, expected a word without spaces, commas, quotes, = < > ! "
        "and without + or - before it",
        base::in_quotes(text));
  }
  return {};
}

}  // namespace petlab::protocol
