#include "cli/answers/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/answers/database_reports.h"
#include "cli/options/database_option.h"
#include "reports/render.h"
#include "reports/running.h"
#include "results/notices.h"
#include "results/store.h"
#include "serving/server.h"
#include "sweeps/locations.h"

namespace petlab::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct ServeOptions {
  std::vector<std::string> reports;
  std::string database;
  std::string host = "127.0.0.1";
  std::optional<std::uint16_t> port;
  bool token = false;
};

constexpr std::uint16_t kUsualPort = 8642;
constexpr auto kLookEvery = std::chrono::milliseconds(250);
constexpr auto kAgainAfter = std::chrono::seconds(1);
// What is made anew while a sweep runs takes no more than so much of a core from it, and where all
// cores are busy less.
constexpr int kRestPart = 9;
constexpr int kNiceness = 10;
constexpr auto kWaitForThread = std::chrono::milliseconds(300);

// The file that a name leads to; nothing where it leads to none.
std::optional<std::pair<dev_t, ino_t>> identity_of(const std::filesystem::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return std::nullopt;
  return std::pair(status.st_dev, status.st_ino);
}

// What the calling thread has used of a core.
std::chrono::nanoseconds processor_time() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// Something that is made from the database again and again, but not too often.
class Due {
 public:
  void changed() { changed_ = true; }
  bool failed() const { return failed_; }
  bool is_due() const { return changed_ && Clock::now() >= not_before_; }
  template <typename Make>
  void make(Make&& make) {
    const auto began = processor_time();
    changed_ = false;
    try {
      make();
    } catch (...) {
      changed_ = failed_ = true;
      not_before_ = Clock::now() + kAgainAfter;
      throw;
    }
    failed_ = false;
    not_before_ = Clock::now() +
                  std::max<Clock::duration>(kAgainAfter, kRestPart * (processor_time() - began));
  }

 private:
  bool changed_ = true;
  bool failed_ = false;  // the last time
  Clock::time_point not_before_;
};

// Follows a database and makes the page of it whenever something has changed and somebody looks.
class PageMaker {
 public:
  PageMaker(const ServeOptions& options, std::filesystem::path database)
      : names_(options.reports), database_(std::move(database)) {
    how_.live = true;
    try {
      how_.home = sweeps::find_locations(sweeps::process_environment()).home;
    } catch (const std::exception&) {
      // No home, no tools of figures: their points are tables.
    }
    open();
    version_ = reader_->data_version();
    open_ = reader_->open_attempts();
    alive_ = which_live();
    page_due_.make([this] { make_page(); });
    now_due_.make([this] { make_now(); });
  }

  const serving::Content& content() const { return content_; }

  /// `wait` waits until it is time to look again; false: end.
  void run(serving::Server& server, const std::function<bool()>& wait) {
    while (wait()) {
      const std::string page = content_.page.plain.tag;
      const std::string now = content_.now.tag;
      try {
        look(server.is_watched());
        if (!page_due_.failed() && !now_due_.failed()) problem_.clear();
      } catch (const std::exception& error) {
        // Also where the database is there again but is another one: it is opened anew.
        reader_.reset();
        problem_ = error.what();
      }
      if (problem_ != shown_problem_) make_now_page();
      if (content_.page.plain.tag != page || content_.now.tag != now) server.publish(content_);
    }
  }

 private:
  void open() {
    identity_ = identity_of(database_);
    reader_.emplace(database_);
    losses_.emplace(database_);
    results::print_copy_notices();
  }

  void look(bool watched) {
    const auto identity = identity_of(database_);
    if (!identity) {
      throw results::Error(
          fmt::format("{}: the database is gone; this is what it held", database_.string()));
    }
    if (!reader_ || identity != identity_) {
      open();
      version_ = -1;
    }
    if (const std::int64_t version = reader_->data_version(); version != version_) {
      version_ = version;
      open_ = reader_->open_attempts();
      page_due_.changed();
      now_due_.changed();
    }
    if (!watched) return;
    // A state also changes when a worker dies, which nobody writes down.
    if (std::vector<bool> alive = which_live(); alive != alive_) {
      alive_ = std::move(alive);
      page_due_.changed();
      now_due_.changed();
    }
    if (now_due_.is_due()) {
      now_due_.make([this] { make_now(); });
    }
    if (page_due_.is_due()) {
      page_due_.make([this] { make_page(); });
    }
  }

  std::vector<bool> which_live() const {
    std::vector<bool> alive;
    const results::IsAlive is_alive = living_now(database_);
    for (const results::AttemptFacts& attempt : open_) alive.push_back(is_alive(attempt));
    return alive;
  }

  void make_page() {
    const reports::Report report =
        names_.empty() ? own_reports_on(database_) : named_reports_on(names_, database_);
    std::string page = reports::to_html(report, how_);
    std::string part = reports::changing_part(page);
    content_.page = serving::make_document(std::move(page));
    content_.changing_part = serving::make_document(std::move(part));
  }

  void make_now() {
    now_ = reports::running_now(*reader_, *losses_, living_now(database_));
    make_now_page();
  }
  void make_now_page() {
    shown_problem_ = now_.problem = problem_;
    const double time =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    content_.now = serving::tagged(reports::to_html(now_, time));
  }

  const std::vector<std::string> names_;
  const std::filesystem::path database_;
  reports::RenderOptions how_;
  std::optional<std::pair<dev_t, ino_t>> identity_;
  std::optional<results::Reader> reader_;
  std::optional<results::LossReader> losses_;
  std::int64_t version_ = 0;
  std::vector<results::AttemptFacts> open_;  // of version_
  std::vector<bool> alive_;                  // of open_
  Due page_due_;
  Due now_due_;
  reports::Now now_;
  std::string problem_;
  std::string shown_problem_;
  serving::Content content_;
};

// A thread that follows the database until the server ends.
class Following {
 public:
  Following(PageMaker& maker, serving::Server& server)
      : thread_([this, &maker, &server] {
          // Of this thread alone, on Linux; where it may not be, the page costs what it costs.
          setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
          maker.run(server, [this] { return wait(); });
          const std::lock_guard lock(mutex_);
          over_ = true;
          changed_.notify_all();
        }) {}
  /// Whether it has ended: what it reads may take seconds.
  bool end() {
    std::unique_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
    return changed_.wait_for(lock, kWaitForThread, [this] { return over_; });
  }
  void join() { thread_.join(); }

 private:
  bool wait() {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, kLookEvery, [this] { return stop_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

int serve(const ServeOptions& options, const Streams& streams) {
  const std::filesystem::path database = database_to_read(options.database);
  serving::ServerOptions listening;
  listening.host = options.host;
  listening.port = options.port.value_or(kUsualPort);
  listening.other_port_will_do = !options.port;
  listening.token = options.token;
  serving::Server server(listening);
  PageMaker maker(options, database);
  server.publish(maker.content());
  streams.out << fmt::format("the reports of {}, live, until Ctrl-C: {}", database.string(),
                             server.address())
              << std::endl;
  Following following(maker, server);
  server.run();
  if (!following.end()) {
    // It only reads, which can be broken off anywhere.
    streams.out.flush();
    streams.err.flush();
    std::_Exit(kDone);
  }
  following.join();
  return kDone;
}

}  // namespace

std::function<int()> make_serve(CLI::App& app, Streams streams) {
  const auto options = std::make_shared<ServeOptions>();
  app.add_option("reports", options->reports,
                 "shipped reports (petlab report --list) or files of definitions; default: all "
                 "that the database's sweeps have something of");
  add_database_option(app, options->database);
  app.add_option("--port", options->port,
                 fmt::format("where to listen, 0: any that is free; default: {}, or any where that "
                             "is taken",
                             kUsualPort));
  app.add_option("--host", options->host,
                 "which address to listen on; default: 127.0.0.1, so that only this machine can "
                 "connect. Others need the token that is part of the printed address");
  app.add_flag("--token", options->token,
               "ask for a token here too: other users of this machine can open its pages");
  return [options, streams] { return serve(*options, streams); };
}

}  // namespace petlab::cli
