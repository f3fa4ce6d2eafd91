#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "serving/document.h"
#include "serving/turns.h"

namespace petlab::serving {

/// The content currently served.
struct Content {
  Document page;           // the complete page
  Document changing_part;  // fetched again by open pages
  Text now;                // HTML fragment pushed to open pages separately
};

struct Limits {
  std::size_t header_bytes = 8192;  // of a request, including its first line
  std::size_t connections = 512;    // more are closed immediately
  std::size_t live = 128;           // connections kept open for updates
  std::chrono::seconds request{
      10};  // to receive a whole request, counted from the connection or the last request
  std::chrono::seconds write{20};      // a client that reads nothing for this long is dropped
  std::chrono::seconds answer{600};    // for a complete answer
  std::chrono::seconds heartbeat{15};  // if nothing changes
  std::chrono::seconds watched{10};    // how long after a request someone counts as a reader
  // For long answers, of which only a few are sent at the same time (turns.h):
  std::chrono::milliseconds patience = Turns::kPatience;
  std::chrono::milliseconds turn = Turns::kLongest;
};

struct ServerOptions {
  std::string host = "127.0.0.1";   // an address of this machine, or a name that resolves to one
  std::uint16_t port = 0;           // 0: any free port
  bool other_port_will_do = false;  // use a free port if that one is in use
  /// Require a token. Always required if other machines can connect.
  bool token = false;
  Limits limits;
};

/// Serves one page over HTTP to any number of browsers and pushes changes to open ones (server-sent
/// events). It reads and writes no files, has no paths but those of gate.h, and rejects request
/// bodies. Everything runs on the thread that calls run(). Slow, silent or numerous clients delay
/// only themselves.
class Server {
 public:
  /// Starts listening. Throws std::runtime_error naming the address if that fails.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The address for readers, with the token if there is one.
  std::string address() const;
  /// Answers requests until a signal (SIGINT, SIGTERM, SIGHUP) or stop() ends it immediately.
  void run();
  /// Thread-safe.
  void stop();
  /// Thread-safe.
  void publish(Content content);
  /// True if someone has the page open or requested it within Limits::watched. Thread-safe.
  bool is_watched() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace petlab::serving
