#include "exchange/attempt_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/shallow_json.h"
#include "protocol/attempt_log.h"

namespace petlab::exchange {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyBlock = std::size_t{1} << 18;
constexpr std::uintmax_t kMostText = std::uintmax_t{64} << 20;
constexpr int kNoteVersion = 1;

[[noreturn]] void fail_copy(const fs::path& file, const char* what, int error) {
  throw Error(fmt::format("{}: {}: {}", file.string(), what, std::strerror(error)));
}

[[noreturn]] void fail_to_read(const fs::path& file, int error) {
  throw SourceError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(error)));
}

void make_parent(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) {
    throw Error(
        fmt::format("{}: cannot be created: {}", file.parent_path().string(), error.message()));
  }
}

base::FileDescriptor open_regular(const fs::path& file) {
  // Neither follows links nor waits for the writer of a pipe.
  base::FileDescriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!in) fail_to_read(file, errno);
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) fail_to_read(file, errno);
  if (!S_ISREG(status.st_mode)) {
    throw SourceError(fmt::format("{}: found no regular file, expected one", file.string()));
  }
  return in;
}

// Reads a whole block, or less at the end of the file.
std::size_t read_block(const base::FileDescriptor& in, std::vector<char>& block,
                       const fs::path& file) {
  std::size_t size = 0;
  while (size < block.size()) {
    const ssize_t got = ::read(in.get(), block.data() + size, block.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(file, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

// The attempt's petlab or worker may still append to the other files, or remove them.
bool is_settled(const std::string& name) {
  return outlives_the_trial(name) && name != "attempt.jsonl" && name != "job.jsonl" &&
         name != "log.txt";
}

std::int64_t number_here(const AttemptCopy& copy, std::int64_t number_there) {
  const auto found = copy.numbers.find(number_there);
  return found == copy.numbers.end() ? number_there : found->second;
}

// Returns text that is not an object unchanged.
std::string renumbered_trial_file(const AttemptCopy& copy, const std::string& text) {
  nlohmann::ordered_json json =
      base::parse_shallow_ordered_json(text, copy.from.trial_json().string());
  if (!json.is_object()) return text;
  json["attempt"] = copy.number;
  if (const auto resume = json.find("resume"); resume != json.end() && resume->is_object()) {
    (*resume)["attempt"] = number_here(copy, resume->value("attempt", std::int64_t{0}));
  }
  return json.dump() + "\n";
}

std::string renumbered_log(const AttemptCopy& copy, const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    nlohmann::ordered_json json = base::shallow_ordered_json_or_none(line);
    const auto resume = json.is_object() ? json.find("resume") : json.end();
    if (json.is_object() && resume != json.end() && resume->is_object()) {
      (*resume)["attempt"] = number_here(copy, resume->value("attempt", std::int64_t{0}));
      result += json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    } else {
      result += line;
    }
    result += '\n';
  }
  return result;
}

bool changes_numbers(const AttemptCopy& copy) {
  return copy.number != copy.from.attempt() ||
         std::any_of(copy.numbers.begin(), copy.numbers.end(),
                     [](const auto& pair) { return pair.first != pair.second; });
}

// The new text of trial.json or attempt.jsonl; std::nullopt for files that are copied unchanged.
std::optional<std::string> rewritten(const AttemptCopy& copy, const std::string& name) {
  if (!changes_numbers(copy)) return std::nullopt;
  try {
    if (copy.from.folder() / name == copy.from.trial_json()) {
      return renumbered_trial_file(copy, base::read_file(copy.from.trial_json(), kMostText));
    }
    if (copy.from.folder() / name == copy.from.attempt_log()) {
      return renumbered_log(copy, base::read_file(copy.from.attempt_log(), kMostText));
    }
  } catch (const nlohmann::json::exception& error) {
    throw SourceError(fmt::format("{}: cannot be understood: {}",
                                  (copy.from.folder() / name).string(), error.what()));
  } catch (const base::Error& error) {
    throw SourceError(error.what());
  }
  return std::nullopt;
}

}  // namespace

FileDigest read_in_parts(const fs::path& file,
                         const std::function<void(const char*, std::size_t)>& take) {
  const base::FileDescriptor in = open_regular(file);
  base::Sha256 hash;
  FileDigest found;
  std::vector<char> block(kCopyBlock);
  while (const std::size_t got = read_block(in, block, file)) {
    hash.add(block.data(), got);
    found.size += got;
    take(block.data(), got);
  }
  found.digest = hash.finish();
  return found;
}

FileDigest digest_of_file(const fs::path& file) {
  return read_in_parts(file, [](const char*, std::size_t) {});
}

bool have_same_bytes(const fs::path& one, const fs::path& other) {
  const base::FileDescriptor in_one = open_regular(one);
  const base::FileDescriptor in_other = open_regular(other);
  std::vector<char> block(kCopyBlock);
  std::vector<char> wanted(kCopyBlock);
  while (true) {
    const std::size_t got = read_block(in_one, block, one);
    if (read_block(in_other, wanted, other) != got) return false;
    if (std::memcmp(block.data(), wanted.data(), got) != 0) return false;
    if (got < block.size()) return true;
  }
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::file_type type = entry->symlink_status(error).type();
    if (error) break;
    if (type == fs::file_type::directory) continue;
    if (type != fs::file_type::regular) {
      throw SourceError(
          fmt::format("{}: found {}, expected a regular file", entry->path().string(),
                      type == fs::file_type::symlink ? "a link" : "a device or a pipe"));
    }
    names.push_back(entry->path().lexically_relative(folder).string());
  }
  if (error) {
    throw SourceError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

FileDigest copy_checked(const fs::path& from, const fs::path& to) {
  make_parent(to);
  const base::FileDescriptor out(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!out) fail_copy(to, "cannot be written", errno);
  const FileDigest copied = read_in_parts(from, [&](const char* part, std::size_t size) {
    if (!base::write_all(out.get(), {part, size})) fail_copy(to, "cannot be written", errno);
  });
  if (::fsync(out.get()) != 0) fail_copy(to, "cannot be written", errno);
  if (const FileDigest read_back = digest_of_file(to); read_back != copied) {
    throw Error(
        fmt::format("{}: it was written with digest {} and reads back with {}; check the disk",
                    to.string(), copied.digest, read_back.digest));
  }
  return copied;
}

bool outlives_the_trial(const std::string& name) {
  return !name.starts_with("checkpoint/") && !name.starts_with("resume/");
}

std::string attempt_identity(const protocol::TrialDirectory& directory) {
  const auto begun = protocol::read_attempt_log(directory).begun;
  return begun ? attempt_identity(*begun) : std::string();
}

std::string attempt_identity(const protocol::AttemptBegun& begun) {
  return begun.owner.empty() ? "" : fmt::format("{} {:.6f}", begun.owner, begun.time);
}

fs::path merge_note_file(const fs::path& attempt_folder) {
  return attempt_folder / "taken_over.json";
}

void write_merge_note(const fs::path& attempt_folder, const MergeNote& note) {
  nlohmann::ordered_json json = {
      {"v", kNoteVersion}, {"from", note.from}, {"attempt", note.attempt}};
  json["files"] = nlohmann::ordered_json::object();
  for (const auto& [name, file] : note.files) {
    json["files"][name] = {{"size", file.size}, {"digest", file.digest}};
  }
  json["left_out"] = note.left_out;
  base::write_file_atomically(
      merge_note_file(attempt_folder),
      json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

std::optional<MergeNote> read_merge_note(const fs::path& attempt_folder) {
  const fs::path file = merge_note_file(attempt_folder);
  const std::optional<std::string> text = base::read_file_if_any(file, kMostText);
  if (!text) return std::nullopt;
  MergeNote note;
  try {
    const nlohmann::json json = base::parse_shallow_json(*text, file.string());
    if (json.at("v") != kNoteVersion) {
      throw Error(
          fmt::format("{}: v is {}, must be {}", file.string(), json.at("v").dump(), kNoteVersion));
    }
    note.from = json.at("from").get<std::string>();
    note.attempt = json.at("attempt").get<std::int64_t>();
    for (const auto& [name, entry] : json.at("files").items()) {
      note.files[name] = {entry.at("size").get<std::uintmax_t>(),
                          entry.at("digest").get<std::string>()};
    }
    note.left_out = json.at("left_out").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& why) {
    throw Error(fmt::format("{}: cannot be understood: {}", file.string(), why.what()));
  }
  return note;
}

std::uintmax_t copy_attempt(const AttemptCopy& copy, const fs::path& folder) {
  MergeNote note;
  note.from = copy.source;
  note.attempt = copy.from.attempt();
  try {
    const auto before = read_merge_note(copy.from.folder());
    if (before) note.left_out = before->left_out;
  } catch (const std::runtime_error& error) {
    throw SourceError(error.what());
  }
  std::uintmax_t bytes = 0;
  for (const std::string& name : files_below(copy.from.folder())) {
    if (folder / name == merge_note_file(folder)) continue;
    if (!copy.everything && !outlives_the_trial(name)) continue;
    if (const auto text = rewritten(copy, name)) {
      make_parent(folder / name);
      base::write_file_atomically(folder / name, *text);
    } else {
      copy_checked(copy.from.folder() / name, folder / name);
    }
    const FileDigest file = digest_of_file(folder / name);
    bytes += file.size;
    if (is_settled(name)) note.files[name] = file;
  }
  write_merge_note(folder, note);
  for (fs::recursive_directory_iterator entry(folder), end; entry != end; ++entry) {
    if (entry->is_directory()) base::sync_folder(entry->path());
  }
  base::sync_folder(folder);
  return bytes;
}

std::vector<std::string> complete_attempt(const AttemptCopy& copy, const fs::path& folder,
                                          const fs::path& staging) {
  std::vector<std::string> copied;
  std::optional<MergeNote> note = read_merge_note(folder);
  for (const std::string& name : files_below(copy.from.folder())) {
    std::error_code error;
    const bool left_out = note && std::find(note->left_out.begin(), note->left_out.end(), name) !=
                                      note->left_out.end();
    const bool lost = name == copy.artifact && !fs::exists(folder / name, error);
    if (!left_out && !lost) continue;
    if (!fs::exists(folder / name, error)) {
      const fs::path staged = staging / "file";
      fs::remove(staged, error);
      copy_checked(copy.from.folder() / name, staged);
      make_parent(folder / name);
      if (::rename(staged.c_str(), (folder / name).c_str()) != 0) {
        fail_copy(folder / name, "cannot be created", errno);
      }
      base::sync_folder((folder / name).parent_path());
    }
    if (note) {
      note->files[name] = digest_of_file(folder / name);
      std::erase(note->left_out, name);
      write_merge_note(folder, *note);
    }
    copied.push_back(name);
  }
  return copied;
}

}  // namespace petlab::exchange
