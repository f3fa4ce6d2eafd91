// Many clients request a long page at the same time, and some of them read nothing.
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <chrono>
#include <list>
#include <thread>
#include <vector>

#include "serving/server.h"
#include "tests/support/catch.h"

namespace petlab::serving {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::steady_clock;

/// A server with a page that is too long for the system's send buffer.
struct LongPage {
  static constexpr std::size_t kSize = std::size_t{8} << 20;
  Server server;
  asio::io_context io;
  std::uint16_t port = 0;
  std::thread thread;

  explicit LongPage(const ServerOptions& options = {}) : server(options) {
    const std::string address = server.address();
    const std::size_t colon = address.rfind(':');
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    thread = std::thread([this] { server.run(); });
    publish("1");
  }
  ~LongPage() {
    server.stop();
    thread.join();
  }
  void publish(const std::string& tag) {
    Content content;
    content.page.plain = {std::make_shared<const std::string>(kSize, 'x'), tag};
    content.changing_part = content.page;
    server.publish(content);
  }
  tcp::socket ask(const std::string& target) {
    tcp::socket socket(io);
    socket.connect({asio::ip::address_v4::loopback(), port});
    asio::write(socket, asio::buffer("GET " + target +
                                     " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    return socket;
  }
};

/// Reads until there are at least `most` bytes, or to the end. Returns the number of bytes read.
std::size_t read_up_to(tcp::socket& socket, std::size_t most) {
  std::vector<char> bytes(std::size_t{64} << 10);
  std::size_t all = 0;
  boost::system::error_code error;
  while (all < most && !error) all += socket.read_some(asio::buffer(bytes), error);
  return all;
}

TEST_CASE("Readers that take nothing delay neither pages nor events", "[serving]") {
  LongPage page;
  tcp::socket open = page.ask("/events");
  std::string events;
  asio::read_until(open, asio::dynamic_buffer(events), "event: page\ndata: 1\n\n");
  std::list<tcp::socket> deaf;
  for (int i = 0; i < 40; ++i) deaf.push_back(page.ask("/"));
  const auto began = steady_clock::now();
  tcp::socket reader = page.ask("/");
  CHECK(read_up_to(reader, ~std::size_t{0}) > LongPage::kSize);
  page.publish("2");
  asio::read_until(open, asio::dynamic_buffer(events), "event: page\ndata: 2\n\n");
  // The server waits twenty seconds for each of the forty before it gives them up.
  CHECK(steady_clock::now() - began < std::chrono::seconds(10));
  // They get their page as soon as they read.
  CHECK(read_up_to(deaf.back(), ~std::size_t{0}) > LongPage::kSize);
}

TEST_CASE("Of many equally fast readers the first finish long before the last", "[serving]") {
  // Even on a slow machine, no turn ends before its page is sent.
  ServerOptions options;
  options.limits.patience = options.limits.turn = std::chrono::minutes(10);
  LongPage page(options);
  constexpr std::size_t kReaders = 64;
  std::list<tcp::socket> readers;
  for (std::size_t i = 0; i < kReaders; ++i) readers.push_back(page.ask("/"));
  // One thread reads from all of them in turn, a piece of each if available.
  std::vector<char> bytes(std::size_t{64} << 10);
  std::size_t all = 0;
  std::vector<std::size_t> finished_at;  // bytes read by all readers at each finish
  for (tcp::socket& socket : readers) socket.non_blocking(true);
  const auto end = steady_clock::now() + std::chrono::seconds(60);
  while (!readers.empty() && steady_clock::now() < end) {
    for (auto socket = readers.begin(); socket != readers.end();) {
      boost::system::error_code error;
      all += socket->read_some(asio::buffer(bytes), error);
      const bool is_over = error && error != asio::error::would_block;
      if (is_over) finished_at.push_back(all);
      socket = is_over ? readers.erase(socket) : std::next(socket);
    }
  }
  REQUIRE(finished_at.size() == kReaders);
  // A quarter of the readers finish after about a quarter of the bytes, plus what the system has
  // buffered for others. If all were served in parallel, they would finish after nearly all bytes.
  CHECK(finished_at[kReaders / 4] < all / 2);
}

}  // namespace
}  // namespace petlab::serving
