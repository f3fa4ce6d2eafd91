#include "cli/fetching/downloads.h"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <system_error>

#include "base/nearest_word.h"
#include "base/signals.h"
#include "cli/options/version.h"
#include "cli/output/patient_output.h"
#include "cli/output/screen.h"
#include "cli/setup/fetch.h"
#include "fetch/error.h"
#include "fetch/fetch_backbone.h"
#include "fetch/fetch_data.h"
#include "orchestrator/running/progress_line.h"
#include "reports/text.h"
#include "sweeps/catalog.h"
#include "sweeps/error.h"
#include "sweeps/hub_cache.h"

namespace petlab::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenPictures = std::chrono::milliseconds(100);
constexpr double kSpeedSeconds = 5;  // the speed is averaged over about this time

volatile sig_atomic_t asked_to_end = 0;
void on_signal(int) { asked_to_end = 1; }

void listen_to_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    base::handle_unless_ignored(signal, on_signal);
  }
  ::signal(SIGPIPE, SIG_IGN);
}

std::string megabytes(std::uintmax_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

// Shows progress: a line that is redrawn on a terminal; elsewhere only notes.
class FetchProgress {
 public:
  FetchProgress(Streams streams, const std::string& term) : err_(streams.err), out_(streams.err) {
    if (err_.writer() != nullptr && Screen::can_draw(err_.writer()->fd(), term)) {
      screen_.emplace(*err_.writer());
    }
  }
  ~FetchProgress() {
    if (screen_) screen_->print({});
  }
  FetchProgress(const FetchProgress&) = delete;
  FetchProgress& operator=(const FetchProgress&) = delete;

  void note(const std::string& line) {
    const std::vector<std::string> lines = reports::printable_lines(line);
    if (screen_) {
      screen_->print(lines);
    } else {
      for (const std::string& each : lines) out_ << each << std::endl;
    }
  }

  void step(const fetch::Step& step) {
    if (!screen_) return;
    const Clock::time_point now = Clock::now();
    if (step.file != file_ || step.done < done_) {
      file_ = step.file;
      begun_ = now;
      from_ = step.done;
    }
    done_ = step.done;
    if (now - drawn_ < kBetweenPictures && step.done < step.size) return;
    drawn_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    std::string line =
        fmt::format("{}  {} of {}", step.file, megabytes(step.done), megabytes(step.size));
    if (seconds >= 1) {
      const double speed = static_cast<double>(step.done - from_) / seconds;
      line += fmt::format(", {:.1f} MB/s", speed / 1e6);
      if (speed > 0) {
        line += fmt::format(", {} left", orchestrator::duration_text(
                                             static_cast<double>(step.size - step.done) / speed));
      }
      // Move the start of the average forward, so that it follows changes of speed.
      if (seconds > 2 * kSpeedSeconds) {
        const double part = 1 - kSpeedSeconds / seconds;
        begun_ += std::chrono::duration_cast<Clock::duration>((now - begun_) * part);
        from_ += static_cast<std::uintmax_t>(static_cast<double>(step.done - from_) * part);
      }
    }
    screen_->show({line.substr(0, static_cast<std::size_t>(screen_->size().width - 1))});
  }

 private:
  PatientOutput err_;
  std::ostream& out_;
  std::optional<Screen> screen_;
  std::string file_;
  Clock::time_point begun_;
  Clock::time_point drawn_;
  std::uintmax_t from_ = 0;
  std::uintmax_t done_ = 0;
};

fetch::HttpOptions http_options(const FetchArguments& arguments,
                                const sweeps::Environment& environment) {
  fetch::HttpOptions options;
  options.user_agent = std::string("petlab/") + kVersion;
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (options.certificates.empty()) options.certificates = environment(name).value_or("");
  }
  // A statically linked libcurl knows no place of certificates: Debian, RHEL, SUSE.
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem"}) {
    std::error_code error;
    if (options.certificates.empty() && std::filesystem::exists(file, error)) {
      options.certificates = file;
    }
  }
  options.retries = arguments.retries;
  options.retry_delay = std::chrono::milliseconds(std::llround(arguments.retry_delay * 1000));
  if (const std::string text = environment("HF_HUB_DOWNLOAD_TIMEOUT").value_or(""); !text.empty()) {
    std::size_t end = 0;
    long seconds = 0;
    try {
      seconds = std::stol(text, &end);
    } catch (const std::exception&) {
      end = 0;
    }
    if (end != text.size() || seconds < 1 || seconds > 86400) {
      throw std::invalid_argument(
          fmt::format("HF_HUB_DOWNLOAD_TIMEOUT is '{}', must be whole seconds, 1 to 86400", text));
    }
    options.timeout = std::chrono::seconds(seconds);
  }
  return options;
}

// Returns false if the user interrupted it; a message was printed.
template <typename Body>
bool downloads(const fetch::HttpOptions& options, Streams streams,
               const sweeps::Environment& environment, Body&& body) {
  listen_to_signals();
  try {
    FetchProgress progress(streams, environment("TERM").value_or(""));
    fetch::Watcher watcher;
    watcher.step = [&](const fetch::Step& step) { progress.step(step); };
    watcher.note = [&](const std::string& line) { progress.note(line); };
    watcher.stopped = [] { return asked_to_end != 0; };
    fetch::Http http(options, watcher);
    body(http, watcher);
  } catch (const fetch::Interrupted&) {
    streams.err << "interrupted; run the same command to resume\n";
    return false;
  }
  return true;
}

// The name to use in a sweep file: the backbone's name, or its folder if petlab would not find this
// commit by name.
std::string name_in_a_sweep(const fetch::BackboneRequest& wanted,
                            const fetch::FetchedBackbone& fetched,
                            const sweeps::Locations& locations) {
  if (wanted.into.empty()) {
    try {
      if (sweeps::backbone_folder(locations, wanted.name, ".") == fetched.folder) {
        return wanted.name;
      }
    } catch (const sweeps::Error&) {
      // For example, there are several commits and no main: try name and revision.
    }
    try {
      const std::string name = wanted.name + "@" + wanted.revision;
      if (sweeps::backbone_folder(locations, name, ".") == fetched.folder) return name;
    } catch (const sweeps::Error&) {
      // For example, two have that name: use the folder.
    }
  }
  return fetched.folder.string();
}

int fetch_one_backbone(const FetchArguments& arguments, Streams streams) {
  const sweeps::Environment environment = sweeps::process_environment();
  const sweeps::Locations locations = sweeps::find_locations(environment);
  const fetch::HubSettings settings = fetch::hub_settings(environment);
  const fetch::HttpOptions options = http_options(arguments, environment);
  fetch::BackboneRequest wanted = {.name = arguments.backbone,
                                   .revision = arguments.revision,
                                   .into = arguments.into,
                                   .digests = locations.cache()};
  // The name may include a revision, as in sweep files.
  if (const std::size_t at = wanted.name.find('@'); at != std::string::npos) {
    if (wanted.revision != fetch::BackboneRequest().revision) {
      throw std::invalid_argument(
          fmt::format("{} names a revision, and so does --revision {}: expected one", wanted.name,
                      wanted.revision));
    }
    wanted.revision = wanted.name.substr(at + 1);
    wanted.name.resize(at);
  }
  fetch::FetchedBackbone fetched;
  std::uintmax_t received = 0;
  const bool over = downloads(options, streams, environment,
                              [&](fetch::Http& http, const fetch::Watcher& watcher) {
                                fetched = fetch::fetch_backbone(wanted, settings, http, watcher);
                                received = http.received();
                              });
  if (!over) return kInterrupted;
  streams.out << fmt::format("{}: {} files, {}, commit {}, in {}\n", wanted.name, fetched.files,
                             megabytes(fetched.bytes), fetched.commit, fetched.folder.string())
              << (received == 0 ? std::string("all files were already there\n")
                                : fmt::format("downloaded {}\n", megabytes(received)))
              << fmt::format("in a sweep: `backbone: {}`\n",
                             name_in_a_sweep(wanted, fetched, locations));
  return kDone;
}

// The data sources of the given tasks; "glue" stands for all tasks of GLUE.
std::vector<const fetch::DataSource*> wanted_sources(const std::vector<std::string>& tasks) {
  std::vector<const fetch::DataSource*> wanted;
  std::vector<std::string_view> known = {"glue"};
  for (const fetch::DataSource& source : fetch::data_sources()) known.emplace_back(source.task);
  for (const std::string& task : tasks) {
    for (const fetch::DataSource& source : fetch::data_sources()) {
      if (task == source.task || task == "glue") wanted.push_back(&source);
    }
    if (task == "glue" || std::find(known.begin(), known.end(), task) != known.end()) continue;
    for (const sweeps::TaskDeclaration& declared : sweeps::tasks()) {
      if (declared.name != task) continue;
      throw std::invalid_argument(
          fmt::format("{}: petlab cannot fetch its data; they are {}", task, declared.source));
    }
    throw std::invalid_argument(base::unknown_word("task", task, known));
  }
  return wanted;
}

// The folder in which petlab already finds a task's data; empty if none.
std::filesystem::path existing_data_folder(const std::string& name,
                                           const sweeps::Locations& locations) {
  for (const sweeps::TaskDeclaration& task : sweeps::tasks()) {
    if (task.name != name) continue;
    try {
      return sweeps::find_task_files(task, locations.data_folders).train.parent_path();
    } catch (const sweeps::Error&) {
      return {};
    }
  }
  return {};
}

int fetch_all_data(const FetchArguments& arguments, Streams streams) {
  const sweeps::Environment environment = sweeps::process_environment();
  const sweeps::Locations locations = sweeps::find_locations(environment);
  const fetch::HttpOptions options = http_options(arguments, environment);
  const std::vector<const fetch::DataSource*> sources = wanted_sources(arguments.tasks);
  std::string server = arguments.server.empty() ? fetch::kDataServer : arguments.server;
  server.erase(server.find_last_not_of('/') + 1);
  if (!server.starts_with("https://") && !server.starts_with("http://")) {
    throw std::invalid_argument(fmt::format("--from is '{}', must be a URL such as {}",
                                            arguments.server, fetch::kDataServer));
  }
  const std::filesystem::path into =
      arguments.into.empty() ? locations.home / "data" : std::filesystem::path(arguments.into);
  const bool over = downloads(
      options, streams, environment, [&](fetch::Http& http, const fetch::Watcher& watcher) {
        for (const fetch::DataSource* source : sources) {
          const std::filesystem::path existing = arguments.into.empty()
                                                     ? existing_data_folder(source->task, locations)
                                                     : std::filesystem::path();
          if (!existing.empty() && existing != into / source->folder) {
            streams.out << fmt::format("{}: already in {}\n", source->task, existing.string())
                        << std::flush;
            continue;
          }
          const auto download = [&](const fetch::DataFile& file, const std::filesystem::path& to) {
            try {
              http.download({server + file.path, "",
                             std::filesystem::path(file.path).filename().string(), file.size, to});
            } catch (const fetch::NoConnection& error) {
              throw fetch::NoConnection(
                  fmt::format("{}: {}; set --from to another server with the same files, or "
                              "https_proxy to a proxy; without a network, unpack the task's "
                              "archive from gluebenchmark.com/tasks to {}",
                              source->task, error.what(), (into / source->folder).string()));
            }
          };
          const std::uintmax_t before = http.received();
          const fetch::FetchedData fetched = fetch::fetch_data(*source, into, download, watcher);
          streams.out << fmt::format("{}: {}, in {}\n", source->task,
                                     fetched.of_the_user ? "kept (petlab did not download it)"
                                     : fetched.was_there
                                         ? "already there"
                                         : "downloaded " + megabytes(http.received() - before),
                                     fetched.folder.string())
                      << std::flush;
        }
      });
  return over ? kDone : kInterrupted;
}

}  // namespace

std::function<int()> make_downloads(CLI::App& app, Streams streams) {
  const auto arguments = std::make_shared<FetchArguments>();
  add_fetch_options(app, *arguments);
  return [arguments, streams]() -> int {
    return arguments->of_backbone ? fetch_one_backbone(*arguments, streams)
                                  : fetch_all_data(*arguments, streams);
  };
}

}  // namespace petlab::cli
