#include "tests/orchestrator/event_server.h"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace petlab::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;

// One request and its answer. A killed client never completes its request.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(tcp::socket socket, std::function<void(std::string)> keep)
      : socket_(std::move(socket)), keep_(std::move(keep)), delay_(socket_.get_executor()) {}

  void start() {
    http::async_read(socket_, buffer_, request_,
                     [self = shared_from_this()](const Error& error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  void answer() {
    // Varies with the content, so that no kind of event always has the same delay.
    delay_.expires_after(std::chrono::milliseconds(std::hash<std::string>()(request_.body()) % 41));
    keep_(std::move(request_.body()));
    answer_.result(http::status::no_content);
    delay_.async_wait([self = shared_from_this()](const Error&) {
      http::async_write(self->socket_, self->answer_,
                        [self](const Error&, std::size_t) { self->socket_.close(); });
    });
  }

  tcp::socket socket_;
  std::function<void(std::string)> keep_;
  asio::steady_timer delay_;
  boost::beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::empty_body> answer_;
};

}  // namespace

EventServer::EventServer() : acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
  accept();
  thread_ = std::thread([this] { io_.run(); });
}

EventServer::~EventServer() {
  io_.stop();
  thread_.join();
}

std::vector<std::string> EventServer::take_bodies() {
  const std::lock_guard lock(mutex_);
  return std::exchange(bodies_, {});
}

void EventServer::accept() {
  acceptor_.async_accept([this](const Error& error, tcp::socket socket) {
    if (!error) {
      std::make_shared<Exchange>(std::move(socket), [this](std::string body) {
        const std::lock_guard lock(mutex_);
        bodies_.push_back(std::move(body));
      })->start();
    }
    accept();
  });
}

}  // namespace petlab::testing
