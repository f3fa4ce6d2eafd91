#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "serving/document.h"
#include "serving/turns.h"

namespace petlab::serving {

/// What is shown now.
struct Content {
  Document page;           // the whole of it
  Document changing_part;  // what an open page fetches again
  Text now;                // a piece of HTML that is sent to open pages by itself
};

struct Limits {
  std::size_t header_bytes = 8192;   // of a request, its first line included
  std::size_t connections = 512;     // more are closed at once
  std::size_t live = 128;            // connections that stay open for what changes
  std::chrono::seconds request{10};  // for a whole request to come, from its connection or the last
  std::chrono::seconds write{20};    // a reader that takes nothing for so long is given up
  std::chrono::seconds answer{600};  // for one whole answer
  std::chrono::seconds heartbeat{15};  // where nothing changes
  std::chrono::seconds watched{10};    // how long a request counts as a reader
  // Of long answers, which few are sent at once (turns.h):
  std::chrono::milliseconds patience = Turns::kPatience;
  std::chrono::milliseconds turn = Turns::kLongest;
};

struct ServerOptions {
  std::string host = "127.0.0.1";   // an address of this machine, or a name that leads to one
  std::uint16_t port = 0;           // 0: a free one
  bool other_port_will_do = false;  // where that one is taken, a free one
  /// Ask for a token. It is always asked for where others than this machine can connect.
  bool token = false;
  Limits limits;
};

/// Serves one page over HTTP to any number of browsers, and tells those that have it open what
/// changes (server-sent events). It reads no file, writes none, and knows no path but those of
/// gate.h; requests have no body. Everything runs on the thread that calls run(); slow, silent or
/// many clients hold nothing up but themselves.
class Server {
 public:
  /// Listens. Throws std::runtime_error where that cannot be, naming the address.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// What a reader opens, with the token where there is one.
  std::string address() const;
  /// Answers until a signal ends it (SIGINT, SIGTERM, SIGHUP) or stop() does, then at once.
  void run();
  /// From any thread.
  void stop();
  /// From any thread.
  void publish(Content content);
  /// Whether somebody has the page open or asked for it in the last Limits::watched. From any
  /// thread.
  bool is_watched() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace petlab::serving
