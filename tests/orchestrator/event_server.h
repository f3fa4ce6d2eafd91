#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace petlab::testing {

/// A web server on the loopback address that keeps the body of each complete request. Its answers
/// are late by up to 40 ms, so that kills also fall between a delivery and its answer.
class EventServer {
 public:
  EventServer();
  ~EventServer();
  EventServer(const EventServer&) = delete;
  EventServer& operator=(const EventServer&) = delete;

  int port() const { return acceptor_.local_endpoint().port(); }
  /// Returns and forgets the bodies so far, in order.
  std::vector<std::string> take_bodies();

 private:
  void accept();

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::mutex mutex_;
  std::vector<std::string> bodies_;
  std::thread thread_;  // must be last: it uses the others
};

}  // namespace petlab::testing
