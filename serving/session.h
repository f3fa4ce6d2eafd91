#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "serving/gate.h"
#include "serving/server.h"
#include "serving/turns.h"

namespace petlab::serving {

class Session;

/// The state shared by the connections of a server, used on its thread except for the two counters.
/// Internal to serving/.
struct Server::State {
  Limits limits;
  Rules rules;
  Content content;
  std::string host;
  std::uint16_t port = 0;
  std::set<Session*> sessions;  // outlives the sessions, which end with `io`
  std::set<Session*> live;
  Turns turns;
  bool turns_watched = false;
  std::atomic<std::size_t> watchers{0};
  std::atomic<std::chrono::steady_clock::rep> asked_at{0};
  boost::asio::io_context io{1};
  boost::asio::ip::tcp::acceptor acceptor{io};
  boost::asio::signal_set signals{io};
  boost::asio::steady_timer heartbeat{io};
  boost::asio::steady_timer next_look{io};  // for watch_turns()
  boost::asio::steady_timer again{io};      // retries accepting when no descriptor was free

  void accept();
  void beat();
  /// Calls Turns::look() repeatedly while a session waits for its turn.
  void watch_turns();
};

/// One connection: a sequence of requests, or events until it ends. Lives as long as one of its
/// operations runs or it waits for its turn.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket, Server::State& state);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();
  /// For a connection with events: sends the changes. If a write is running, the rest is sent when
  /// it ends. With `beat`, sends something even without changes.
  void tell(bool beat);

 private:
  using Error = boost::system::error_code;
  void read();
  void on_request(const Error& error);
  void answer();
  void refuse(unsigned status, std::string_view why);
  void send_page(const Document& document);
  /// Sends a head with the body's length, and the body. Long bodies wait for their turn.
  void send(unsigned status, std::string_view headers, std::shared_ptr<const std::string> body);
  void begin_answer();
  void begin_events();
  void watch_for_end();
  void write_more();
  void on_written();
  void linger();
  void discard();

  Server::State& state_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  std::string head_;  // sent before the body; sent_ counts both
  std::shared_ptr<const std::string> body_;
  std::size_t sent_ = 0;
  std::chrono::steady_clock::time_point give_up_;
  std::array<char, 4096> discarded_{};
  std::size_t discarded_bytes_ = 0;
  bool close_ = false;  // after this answer
  bool head_only_ = false;
  bool is_live_ = false;
  bool writing_ = false;
  std::string sent_part_tag_;  // tags of the content sent to an open page
  std::string sent_now_tag_;
};

}  // namespace petlab::serving
