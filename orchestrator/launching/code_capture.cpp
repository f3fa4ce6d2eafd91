#include "orchestrator/launching/code_capture.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/child.h"
#include "base/programs.h"
#include "base/secrets.h"
#include "base/sha256.h"
#include "base/shown.h"
#include "base/trimmed.h"
#include "base/utf8.h"

namespace petlab::orchestrator {
namespace {

using protocol::CodeRecord;
using protocol::CodeRepository;
using Clock = std::chrono::steady_clock;

// The environment variables that are recorded (docs/reference/code.md). They decide which
// libraries and devices a worker uses, and how.
constexpr const char* kRecordedVariables[] = {"ACCELERATE_USE_CPU",
                                              "ATEN_CPU_CAPABILITY",
                                              "CONDA_DEFAULT_ENV",
                                              "CONDA_PREFIX",
                                              "CUBLAS_WORKSPACE_CONFIG",
                                              "CUDA_DEVICE_ORDER",
                                              "CUDA_HOME",
                                              "CUDA_LAUNCH_BLOCKING",
                                              "CUDA_VISIBLE_DEVICES",
                                              "HF_DATASETS_OFFLINE",
                                              "HF_HOME",
                                              "HF_HUB_CACHE",
                                              "HF_HUB_OFFLINE",
                                              "HIP_VISIBLE_DEVICES",
                                              "JAX_PLATFORMS",
                                              "LD_LIBRARY_PATH",
                                              "LD_PRELOAD",
                                              "MKL_NUM_THREADS",
                                              "NVIDIA_TF32_OVERRIDE",
                                              "OMP_NUM_THREADS",
                                              "OPENBLAS_NUM_THREADS",
                                              "PETLAB_DATA",
                                              "PETLAB_HOME",
                                              "PYTHONHASHSEED",
                                              "PYTHONPATH",
                                              "PYTORCH_CUDA_ALLOC_CONF",
                                              "TOKENIZERS_PARALLELISM",
                                              "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
                                              "TRANSFORMERS_OFFLINE",
                                              "TZ",
                                              "VIRTUAL_ENV",
                                              "XLA_FLAGS"};

// In a repository where git needs longer than this, it is asked rarely.
constexpr auto kQuick = std::chrono::milliseconds(200);

constexpr const char* kLooksSecret = "(left out: looks like a secret)";
constexpr const char* kMayHoldSecrets = "files of this name may hold secrets";
constexpr const char* kHasSecret = "it has a line that looks like a secret";

// True for a control character that a terminal would obey, also U+0080 to U+009F.
bool is_control(std::string_view text, std::size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c == 0xC2 && at + 1 < text.size()) return static_cast<unsigned char>(text[at + 1]) < 0xA0;
  return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
}

// The text with bytes that are not UTF-8, and control characters, as \xNN.
std::string plain_text(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  std::size_t bad = base::first_invalid_utf8(text).value_or(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at == bad || is_control(text, at)) {
      made += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
      // A control character of two bytes ends with one that is none by itself.
      if (at != bad && static_cast<unsigned char>(text[at]) == 0xC2) {
        made += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++at]));
      }
    } else {
      made += text[at];
    }
    if (at == bad) {
      bad = at + 1 + base::first_invalid_utf8(text.substr(at + 1)).value_or(text.size() - at - 1);
    }
  }
  return made;
}

bool is_compiled(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::array<char, 4> magic{};
  in.read(magic.data(), magic.size());
  return in && std::string_view(magic.data(), magic.size()) == "\177ELF";
}

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// The command without words that look like secrets.
std::vector<std::string> shown_command(const WorkerCommand& worker) {
  std::vector<std::string> words = {plain_text(worker.program.string())};
  for (std::size_t at = 0; at < worker.arguments.size(); ++at) {
    const std::string& word = worker.arguments[at];
    const bool secret = base::has_secret(word) ||
                        (at > 0 && base::has_secret(worker.arguments[at - 1] + " " + word));
    words.push_back(secret ? kLooksSecret : plain_text(word));
  }
  return words;
}

// Git's own variables would make it answer about another repository, or run programs.
std::vector<std::string> git_environment() {
  std::vector<std::string> environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    constexpr std::string_view kUnset[] = {
        "GIT_DIR",           "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",    "GIT_NAMESPACE", "GIT_PREFIX",     "GIT_EXTERNAL_DIFF",
        "GIT_DIFF_OPTS",     "GIT_PAGER",     "LC_ALL",         "LANGUAGE",
        "GIT_OPTIONAL_LOCKS"};
    if (std::find(std::begin(kUnset), std::end(kUnset), name) != std::end(kUnset)) continue;
    if (name.starts_with("GIT_TRACE")) continue;
    environment.emplace_back(text);
  }
  // It neither writes to the repository, nor asks the user, nor downloads objects.
  for (const char* entry :
       {"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C.UTF-8"}) {
    environment.emplace_back(entry);
  }
  return environment;
}

// Asks git about the repository of a folder, within one time limit.
class Git {
 public:
  Git(std::string program, const std::filesystem::path& folder, std::chrono::milliseconds limit)
      : program_(std::move(program)),
        folder_(folder.string()),
        limit_(limit),
        deadline_(Clock::now() + limit) {}

  /// The answer; std::nullopt after an error, with problem().
  std::optional<std::string> ask(const std::vector<std::string>& words, std::string input = {}) {
    base::ChildAnswer answer = run(words, std::move(input));
    if (!answer.problem.empty()) return fail(answer);
    return std::move(answer.output);
  }
  /// Likewise, but an answer that is too long is cut.
  std::optional<std::string> ask_beginning(const std::vector<std::string>& words, bool& cut) {
    base::ChildAnswer answer = run(words, {});
    cut = answer.ending == base::ChildAnswer::Ending::too_much;
    if (!cut && !answer.problem.empty()) return fail(answer);
    return std::move(answer.output);
  }
  const std::string& problem() const { return problem_; }
  bool timed_out() const { return timed_out_; }

 private:
  base::ChildAnswer run(const std::vector<std::string>& words, std::string input) {
    base::ChildCommand command;
    command.program = program_;
    command.arguments = {"-C", folder_,
                         "-c", "core.fsmonitor=false",
                         "-c", "core.quotePath=false",
                         "-c", "diff.relative=false"};
    command.arguments.insert(command.arguments.end(), words.begin(), words.end());
    command.time_limit =
        std::max(std::chrono::milliseconds(1),
                 std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()));
    command.output_limit = std::size_t{64} << 20;
    command.input = std::move(input);
    command.environment = git_environment();
    return base::run_child(std::move(command));
  }
  std::nullopt_t fail(const base::ChildAnswer& answer) {
    if (answer.timed_out()) {
      timed_out_ = true;
      problem_ = fmt::format("git did not answer within {} s",
                             std::chrono::duration<double>(limit_).count());
      return std::nullopt;
    }
    const std::string_view said = base::trimmed(answer.errors);
    problem_ = "git " + answer.problem;
    if (!said.empty()) problem_ += ": " + base::printable(said.substr(0, said.find('\n')));
    return std::nullopt;
  }

  std::string program_;
  std::string folder_;
  std::chrono::milliseconds limit_;
  Clock::time_point deadline_;
  std::string problem_;
  bool timed_out_ = false;
};

// Calls `take` with each part of a text that ends with a zero byte.
template <typename Take>
void each_entry(std::string_view text, const Take& take) {
  for (std::size_t end = text.find('\0'); end != text.npos; end = text.find('\0')) {
    take(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

// The path in the first line of a file's diff, `diff --git a/PATH b/PATH`. Without renames, both
// are the same, so the path is the second half of the line, even if it contains spaces.
std::string path_of_diff(std::string_view part) {
  constexpr std::string_view kBegin = "diff --git ";
  std::string_view both = part.substr(kBegin.size(), part.find('\n') - kBegin.size());
  std::string_view path = both.substr(both.size() / 2 + 1);
  if (path.starts_with('"')) path.remove_prefix(1);
  if (path.ends_with('"')) path.remove_suffix(1);
  return std::string(path.substr(std::min<std::size_t>(2, path.size())));  // b/
}

// Keeps the parts of a diff that hold no secrets and fit into the limit. A part that does not is
// one line in its place.
void take_diff(std::string_view diff, bool cut, std::size_t limit, CodeRepository& found) {
  constexpr std::string_view kNext = "\ndiff --git ";
  const std::string too_long = fmt::format("the whole diff has more than {} bytes", limit);
  while (!diff.empty()) {
    const std::size_t next = diff.find(kNext);
    const std::string_view part = diff.substr(0, next == diff.npos ? next : next + 1);
    diff.remove_prefix(part.size());
    if (!part.starts_with("diff --git ")) {  // `* Unmerged path …`
      found.diff += plain_text(part);
      continue;
    }
    const std::string path = plain_text(path_of_diff(part));
    std::string why;
    if (base::is_secret_file(path)) {
      why = kMayHoldSecrets;
    } else if (diff.empty() && cut) {
      why = too_long;  // its end is missing
    } else if (base::has_secret(part)) {
      why = kHasSecret;
    } else {
      const std::string text = plain_text(part);
      if (found.diff.size() + text.size() <= limit) {
        found.diff += text;
        continue;
      }
      why = too_long;
    }
    found.left_out[path] = why;
  }
  if (!cut) return;
  for (const auto& [path, digest] : found.changed) {
    const std::string header = fmt::format("diff --git a/{0} b/{0}\n", path);
    if (!found.left_out.contains(path) && found.diff.find(header) == std::string::npos) {
      found.left_out[path] = too_long;
    }
  }
}

// Reads the state of the repository; the reason if there is none.
std::string read_git(Git& git, const CodeLimits& limits, CodeRepository& found) {
  const auto said = git.ask({"rev-parse", "--show-toplevel"});
  if (!said) return git.problem();
  const std::filesystem::path top = said->substr(0, said->find('\n'));
  found.folder = plain_text(top.string());
  const auto commit = git.ask({"rev-parse", "--verify", "-q", "HEAD"});
  if (!commit) {
    return git.timed_out() ? git.problem() : found.folder + ": the repository has no commit yet";
  }
  found.commit = base::trimmed(*commit);
  if (const auto branch = git.ask({"rev-parse", "--abbrev-ref", "HEAD"})) {
    found.branch = plain_text(base::trimmed(*branch));
    if (found.branch == "HEAD") found.branch.clear();
  }

  // The files of the commit: mode, digest and path.
  std::map<std::string, std::string> files;
  const auto listed = git.ask({"ls-tree", "-r", "-z", "--full-tree", "HEAD"});
  if (!listed) return git.problem();
  each_entry(*listed, [&](std::string_view entry) {
    const std::size_t tab = entry.find('\t');
    if (tab != entry.npos) files[std::string(entry.substr(tab + 1))] = entry.substr(0, tab);
  });

  // The files that differ from it: `:OLD_MODE NEW_MODE OLD NEW STATUS`, then the path.
  const auto raw =
      git.ask({"diff", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "HEAD"});
  if (!raw) return git.problem();
  found.clean = raw->empty();
  std::string about;
  std::vector<std::string> to_digest;
  each_entry(*raw, [&](std::string_view entry) {
    if (about.empty()) {
      about = entry;
      return;
    }
    const std::string path(entry);
    const std::string mode = about.substr(8, 6);
    const std::size_t digest = about.find(' ', 15) + 1;  // after OLD
    std::string now = about.substr(digest, about.rfind(' ') - digest);
    const bool deleted = about.ends_with('D');
    if (about.substr(15, digest - 16) == now && mode == about.substr(1, 6)) {
      now += "-dirty";  // a submodule at the same commit, as git's diff shows it
    }
    if (now.find_first_not_of('0') == std::string::npos && !deleted) {
      // Git digests the target of a symbolic link, and reads paths from lines.
      const std::filesystem::path file = top / path;
      std::error_code error;
      if (std::filesystem::is_symlink(file, error)) {
        now = "link to " + std::filesystem::read_symlink(file, error).string();
      } else if (is_file(file) && path.find('\n') == std::string::npos) {
        to_digest.push_back(path);
      }
    }
    if (!base::is_secret_file(path)) {
      found.changed[path] = deleted ? "deleted" : now;
    }
    if (deleted) {
      files.erase(path);
    } else {
      files[path] = mode + " " + now;
    }
    about.clear();
  });
  if (!to_digest.empty()) {
    // Relative to the top, like all paths here.
    const auto digests = git.ask({"-C", top.string(), "hash-object", "--stdin-paths"},
                                 fmt::format("{}\n", fmt::join(to_digest, "\n")));
    if (!digests) return git.problem();
    std::string_view rest = *digests;
    for (const std::string& path : to_digest) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string digest(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      files[path] = files[path].substr(0, 7) + digest;
      if (const auto entry = found.changed.find(path); entry != found.changed.end()) {
        entry->second = digest;
      }
    }
  }

  // Sweep and report files are no code: the database has their texts, and users edit them while
  // trials run.
  const auto definitions = git.ask({"-C", top.string(), "grep", "-l", "-z", "-E",
                                    "^(sweep|report)[[:space:]]*:", "--", "*.yaml", "*.yml"});
  if (!definitions && git.timed_out()) return git.problem();
  if (definitions) {
    each_entry(*definitions, [&](std::string_view path) { files.erase(std::string(path)); });
  }
  base::Sha256 hash;
  for (const auto& [path, about_file] : files) {
    if (base::is_secret_file(path)) continue;
    // The digest is the last word, in ls-tree's lines too.
    const std::string line =
        about_file.substr(0, 6) + about_file.substr(about_file.rfind(' ')) + " " + path + '\0';
    hash.add(line.data(), line.size());
  }
  found.tree = hash.finish();

  if (found.clean) return {};
  bool cut = false;
  const auto diff = git.ask_beginning(
      {"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--unified=3",
       "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", "HEAD"},
      cut);
  if (!diff) return git.problem();
  take_diff(*diff, cut, limits.diff_bytes, found);
  std::map<std::string, std::string> valid;
  for (const auto& [path, digest] : found.changed) valid[plain_text(path)] = digest;
  found.changed = std::move(valid);
  return {};
}

}  // namespace

CodeCapture::CodeCapture(WorkerCommand worker, sweeps::Environment environment, CodeLimits limits)
    : worker_(std::move(worker)), environment_(std::move(environment)), limits_(limits) {
  record_.command = shown_command(worker_);
  for (const char* name : kRecordedVariables) {
    const std::optional<std::string> value = environment_(name);
    if (!value) continue;
    record_.environment[name] =
        base::has_secret(name + ("=" + *value)) ? kLooksSecret : plain_text(*value);
  }
}

std::string CodeCapture::digest_of(const std::filesystem::path& file) {
  std::error_code error;
  Digested& known = digests_[file.string()];
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  const auto changed = std::filesystem::last_write_time(file, error);
  if (error || size > limits_.file_bytes) return {};
  if (!known.digest.empty() && known.size == size && known.changed == changed) return known.digest;
  std::ifstream in(file, std::ios::binary);
  base::Sha256 hash;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    hash.add(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof()) return {};
  known = {changed, size, hash.finish()};
  return known.digest;
}

// The files of the command: its arguments, and the program unless it is a compiled one that runs
// them.
void CodeCapture::read_files() {
  record_.files.clear();
  std::vector<std::filesystem::path> files;
  for (const std::string& argument : worker_.arguments) {
    if (is_file(argument)) files.push_back(std::filesystem::absolute(argument).lexically_normal());
  }
  folder_.clear();
  std::error_code error;
  const auto use_folder_of = [&](const std::filesystem::path& file) {
    if (folder_.empty() && !is_compiled(file)) {
      folder_ = std::filesystem::weakly_canonical(file, error).parent_path();
    }
  };
  for (const std::filesystem::path& file : files) use_folder_of(file);
  use_folder_of(worker_.program);
  // `python3 -m package` imports from the current folder.
  if (folder_.empty() && files.empty() && !worker_.arguments.empty()) {
    folder_ = std::filesystem::current_path(error);
  }
  if (files.empty() || !is_compiled(worker_.program)) {
    files.insert(files.begin(), worker_.program.lexically_normal());
  }
  for (const std::filesystem::path& file : files) {
    record_.files.push_back({plain_text(file.string()), digest_of(file)});
  }
}

void CodeCapture::read_repository() {
  record_.repository.reset();
  record_.why_no_repository.clear();
  if (folder_.empty()) {
    record_.why_no_repository = "the worker is a compiled program";
    return;
  }
  const std::string program =
      base::find_program("git", environment_("PATH").value_or("/usr/bin:/bin"));
  if (program.empty()) {
    record_.why_no_repository = "git is not installed";
    return;
  }
  const Clock::time_point begin = Clock::now();
  Git git(program, folder_, limits_.git);
  CodeRepository found;
  record_.why_no_repository = read_git(git, limits_, found);
  if (record_.why_no_repository.empty()) record_.repository = std::move(found);
  const Clock::time_point end = Clock::now();
  // A repository that is too large for git's limit would delay every start.
  ask_git_at_ = git.timed_out() ? Clock::time_point::max()
                                : end + (end - begin > kQuick ? 10 : 1) * (end - begin);
}

const CodeRecord& CodeCapture::now() {
  read_files();
  if (Clock::now() >= ask_git_at_) read_repository();
  return record_;
}

std::string script_digest_of(const CodeRecord& record) {
  std::string all;
  for (const protocol::CodeFile& file : record.files) {
    if (file.digest.empty()) return {};
    all += file.digest + "\n";
  }
  return all.empty() ? all : base::sha256(all);
}

}  // namespace petlab::orchestrator
