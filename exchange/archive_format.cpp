#include "exchange/archive_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/shallow_json.h"
#include "base/utf8.h"
#include "protocol/trial_directory.h"

namespace petlab::exchange {
namespace {

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = name.find('/', begin);
    parts.push_back(name.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

bool is_trial_id(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_digest(const std::string& text) {
  return text.size() == 7 + 64 && text.starts_with("sha256:") &&
         text.find_first_not_of("0123456789abcdef", 7) == std::string::npos;
}

}  // namespace

std::string shown_name(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  std::string shown;
  for (const unsigned char c : name.substr(0, kLongest)) {
    shown +=
        c < 0x20 || c >= 0x7f ? fmt::format("\\x{:02x}", c) : std::string(1, static_cast<char>(c));
  }
  return "'" + shown + (name.size() > kLongest ? "…'" : "'");
}

std::string why_no_archive_name(const std::string& name) {
  if (name.empty()) return "it has no name";
  if (name.front() == '/') return "its name leads out of the archive: it is an absolute path";
  if (base::first_invalid_utf8(name)) return "its name is not UTF-8";
  if (std::any_of(name.begin(), name.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == '\x7f' || c == '\\';
      })) {
    return "its name has a character that does not occur in a runs folder";
  }
  const std::vector<std::string> parts = parts_of(name);
  for (const std::string& part : parts) {
    if (part == "..") return "its name leads out of the archive: it contains ..";
    if (part.empty() || part == ".") return "its name has an empty part";
    if (part.size() > 255) return "a part of its name has more than 255 bytes";
  }
  const bool in_runs = parts.size() > 2 && parts[0] == "runs";
  if (in_runs && parts[1] == "sweeps" && parts.size() == 3 && parts[2].front() != '.') return {};
  if (in_runs && is_trial_id(parts[1])) {
    if (parts.size() == 3 && (parts[2] == "decisions.jsonl" || parts[2] == "remarks.jsonl")) {
      return {};
    }
    if (parts.size() > 3 && protocol::attempt_number(parts[2])) return {};
  }
  return "it is not a file of a runs folder (runs/sweeps/NAME, runs/TRIAL/NUMBER/…)";
}

std::string archive_list_text(const ArchiveList& list) {
  nlohmann::ordered_json json = {
      {"v", kArchiveFormat}, {"kind", "petlab archive"}, {"petlab", list.petlab}};
  json["left_out"] = list.left_out;
  json["files"] = nlohmann::ordered_json::array();
  for (const auto& [name, file] : list.files) {
    json["files"].push_back({{"name", name}, {"size", file.size}, {"digest", file.digest}});
  }
  return json.dump(0, ' ', false, nlohmann::ordered_json::error_handler_t::strict) + "\n";
}

ArchiveList parse_archive_list(const std::string& text, const std::filesystem::path& archive) {
  const auto refuse = [&](const std::string& what) {
    throw Error(fmt::format("{}: {}: {}", archive.string(), kArchiveList, what));
  };
  ArchiveList list;
  try {
    const nlohmann::json json =
        base::parse_shallow_json(text, archive.string() + ": " + kArchiveList);
    if (!json.is_object() || json.value("kind", "") != "petlab archive") {
      refuse("found something else than the list of a petlab archive");
    }
    if (json.at("v") != kArchiveFormat) {
      refuse(fmt::format("v is {}, must be {}: made by a newer petlab", json.at("v").dump(),
                         kArchiveFormat));
    }
    list.petlab = json.value("petlab", "");
    json.at("left_out").get_to(list.left_out);
    for (const nlohmann::json& entry : json.at("files")) {
      const auto name = entry.at("name").get<std::string>();
      if (const std::string why = why_no_archive_name(name); !why.empty()) {
        refuse(shown_name(name) + ": " + why);
      }
      const FileDigest file{entry.at("size").get<std::uintmax_t>(),
                            entry.at("digest").get<std::string>()};
      if (!entry.at("size").is_number_unsigned() || !is_digest(file.digest)) {
        refuse(shown_name(name) + ": its size or digest is invalid");
      }
      if (!list.files.emplace(name, file).second) refuse(shown_name(name) + ": is listed twice");
    }
    for (const auto& [folder, names] : list.left_out) {
      if (!why_no_archive_name(folder + "/x").empty()) {
        refuse(shown_name(folder) + ": is not an attempt's folder");
      }
    }
  } catch (const nlohmann::json::exception& error) {
    refuse(std::string("cannot be understood: ") + error.what());
  } catch (const base::Error& error) {
    throw Error(error.what());
  }
  return list;
}

}  // namespace petlab::exchange
