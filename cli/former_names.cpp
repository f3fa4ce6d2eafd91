#include "cli/former_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace petlab::cli {
namespace {

struct FormerName {
  std::string_view name;
  std::string_view flag;  // required flag of the former name, dropped; empty: none
  std::vector<std::string> present;
};

const std::vector<FormerName>& former_names() {
  static const std::vector<FormerName> all = {
      {"explain", "", {"show"}},
      {"unhide", "", {"hide", "--undo"}},
      {"ingest", "--rebuild", {"db", "rebuild"}},
      {"ingest", "", {"db", "import"}},
      {"check", "", {"db", "check"}},
      {"backup", "", {"db", "backup"}},
      {"gc", "", {"db", "gc"}},
      {"merge", "", {"db", "merge"}},
      {"import", "", {"db", "import"}},
      {"export", "", {"db", "export"}},
  };
  return all;
}

}  // namespace

PresentWords present_words(std::vector<std::string> words) {
  for (const FormerName& former : former_names()) {
    if (words.empty() || words.front() != former.name) continue;
    std::string name(former.name);
    if (!former.flag.empty()) {
      const auto flag = std::find(words.begin(), words.end(), former.flag);
      if (flag == words.end()) continue;
      words.erase(flag);
      name += fmt::format(" {}", former.flag);
    }
    words.erase(words.begin());
    words.insert(words.begin(), former.present.begin(), former.present.end());
    return {std::move(words),
            fmt::format("petlab {} is now petlab {}", name, fmt::join(former.present, " "))};
  }
  return {std::move(words), ""};
}

}  // namespace petlab::cli
