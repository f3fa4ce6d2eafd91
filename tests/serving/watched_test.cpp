// Readers that come and leave: a page without a reader is not recomputed.
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "serving/server.h"
#include "tests/support/catch.h"

namespace petlab::serving {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// A server that stops counting a reader as soon as it leaves.
struct Watched {
  Server server{options()};
  asio::io_context io;
  std::uint16_t port = 0;
  std::thread thread;

  static ServerOptions options() {
    ServerOptions result;
    result.limits.watched = std::chrono::seconds(0);
    result.limits.live = 2;
    return result;
  }
  Watched() {
    const std::string address = server.address();
    std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
    thread = std::thread([this] { server.run(); });
    Content content;
    content.page.plain = {std::make_shared<const std::string>("page"), "1"};
    content.changing_part = content.page;
    server.publish(content);
  }
  ~Watched() {
    server.stop();
    thread.join();
  }
  tcp::socket ask(const std::string& target, const std::string& method = "GET") {
    tcp::socket socket(io);
    socket.connect({asio::ip::address_v4::loopback(), port});
    asio::write(socket,
                asio::buffer(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    return socket;
  }
  /// A connection that has received its first event.
  tcp::socket listener() {
    tcp::socket socket = ask("/events");
    std::string received;
    asio::read_until(socket, asio::dynamic_buffer(received), "event: page\ndata: 1\n\n");
    return socket;
  }
  bool is_watched_after(tcp::socket& gone) {
    gone.shutdown(tcp::socket::shutdown_send);
    read_to_end(gone);
    // The server has one thread: when it answers another request, it has handled that end.
    tcp::socket next = ask("/nothing");
    next.shutdown(tcp::socket::shutdown_send);
    read_to_end(next);
    return server.is_watched();
  }
  static void read_to_end(tcp::socket& socket) {
    std::string rest;
    boost::system::error_code end;
    asio::read(socket, asio::dynamic_buffer(rest), end);
  }
};

}  // namespace

TEST_CASE("A page is watched while it has a reader", "[serving]") {
  Watched page;
  CHECK_FALSE(page.server.is_watched());
  tcp::socket first = page.listener();
  CHECK(page.server.is_watched());
  tcp::socket second = page.listener();
  // One too many is refused and does not count.
  tcp::socket third = page.ask("/events");
  std::string refused;
  asio::read_until(third, asio::dynamic_buffer(refused), "close one\n");
  CHECK(refused.find(" 503 ") != std::string::npos);
  CHECK(page.is_watched_after(first));
  CHECK_FALSE(page.is_watched_after(second));
  // Places become free again, for any number of readers one after another.
  for (int reader = 0; reader < 5; ++reader) {
    tcp::socket next = page.listener();
    CHECK(page.server.is_watched());
    CHECK_FALSE(page.is_watched_after(next));
  }
}

TEST_CASE("A HEAD request for events does not count as a watcher", "[serving]") {
  Watched page;
  tcp::socket head = page.ask("/events", "HEAD");
  std::string answer;
  asio::read_until(head, asio::dynamic_buffer(answer), "\r\n\r\n");
  CHECK(answer.find(" 200 ") != std::string::npos);
  CHECK_FALSE(page.server.is_watched());
}

}  // namespace petlab::serving
