#include "serving/session.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <utility>

#include "base/json_line.h"

namespace petlab::serving {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using std::chrono::steady_clock;

constexpr std::size_t kMostAtOnce = std::size_t{256} << 10;
// Answers up to this size usually fit the socket's buffer, so they need no turn.
constexpr std::size_t kShort = std::size_t{64} << 10;
constexpr std::size_t kMostDiscarded = std::size_t{1} << 20;

// No other site may frame, embed or read the content, and our addresses are not sent as referrers.
constexpr std::string_view kEveryAnswer =
    "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n";

// Limits the unsent data in the system's buffer. Otherwise it would accept all answers at once and
// send them in parallel.
using Unsent = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;
constexpr int kMostUnsent = 64 << 10;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Session::Session(asio::ip::tcp::socket socket, Server::State& state)
    : state_(state),
      stream_(std::move(socket)),
      buffer_(state.limits.header_bytes + std::size_t{4096}) {
  state_.sessions.insert(this);
}

Session::~Session() {
  state_.sessions.erase(this);
  if (state_.live.erase(this) > 0) --state_.watchers;
  state_.turns.leave(this, steady_clock::now());
}

void Session::start() {
  Error ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  stream_.socket().set_option(Unsent(kMostUnsent), ignored);
  read();
}

void Session::read() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(state_.limits.header_bytes));
  parser_->body_limit(0);
  stream_.expires_after(state_.limits.request);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](const Error& error, std::size_t) { self->on_request(error); });
}

void Session::on_request(const Error& error) {
  if (!error) {
    answer();
    return;
  }
  close_ = true;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    refuse(431, "the request's header is too long");
  } else if (error == http::error::body_limit) {
    refuse(413, "requests must not have a body");
  } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    refuse(400, "this is not an HTTP/1.1 request");
  }
  // Otherwise the client has left or was silent too long: the connection closes here.
}

void Session::answer() {
  const auto& request = parser_->get();
  head_only_ = request.method() == http::verb::head;
  close_ = !parser_->keep_alive();
  if (parser_->chunked() || parser_->content_length().value_or(0) > 0) {
    close_ = true;
    refuse(413, "requests must not have a body");
    return;
  }
  const auto header = [&](const char* name) { return view(request[name]); };
  Asked asked;
  asked.method = view(request.method_string());
  asked.target = view(request.target());
  asked.host = header("Host");
  asked.origin = header("Origin");
  asked.fetch_site = header("Sec-Fetch-Site");
  asked.fetch_mode = header("Sec-Fetch-Mode");
  asked.fetch_dest = header("Sec-Fetch-Dest");
  asked.cookie = header("Cookie");
  asked.authorization = header("Authorization");
  const Verdict verdict = judge(asked, state_.rules);
  if (const auto* refused = std::get_if<Refused>(&verdict)) {
    refuse(static_cast<unsigned>(refused->status), refused->why);
    return;
  }
  state_.asked_at = steady_clock::now().time_since_epoch().count();
  if (std::holds_alternative<SignedIn>(verdict)) {
    // Lax, because the address may be opened from another site's page, such as a terminal in a
    // browser.
    send(303,
         fmt::format("Location: /\r\nCache-Control: no-store\r\nSet-Cookie: {}={}; Path=/; "
                     "HttpOnly; SameSite=Lax\r\n",
                     state_.rules.cookie, state_.rules.token),
         nullptr);
    return;
  }
  const Content& content = state_.content;
  const Resource what = std::get<Granted>(verdict).what;
  if (what == Resource::icon) {
    send(204, "", nullptr);
  } else if (what == Resource::events) {
    begin_events();
  } else if (content.page.plain.bytes == nullptr) {
    refuse(503, "the reports are not ready yet; try again");
  } else {
    send_page(what == Resource::page ? content.page : content.changing_part);
  }
}

// Compression leaks nothing: pages contain no data of the request and no secrets.
void Session::send_page(const Document& document) {
  const auto& request = parser_->get();
  const bool packed = accepts_gzip(view(request["Accept-Encoding"]));
  const Text& text = packed ? document.gzip : document.plain;
  const std::string tag = fmt::format("\"{}\"", text.tag);
  const std::string headers = fmt::format(
      "Content-Type: text/html; charset=utf-8\r\n{}Vary: Accept-Encoding\r\nCache-Control: "
      "no-cache\r\nETag: {}\r\n",
      packed ? "Content-Encoding: gzip\r\n" : "", tag);
  if (view(request["If-None-Match"]) == tag) {
    send(304, headers, nullptr);
  } else {
    send(200, headers, text.bytes);
  }
}

void Session::refuse(unsigned status, std::string_view why) {
  const std::string allow = status == 405 ? "Allow: GET, HEAD\r\n" : "";
  send(status, allow + "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n",
       std::make_shared<const std::string>(std::string(why) + "\n"));
}

void Session::send(unsigned status, std::string_view headers,
                   std::shared_ptr<const std::string> body) {
  head_ = fmt::format("HTTP/1.1 {} {}\r\n{}{}", status,
                      view(http::obsolete_reason(static_cast<http::status>(status))), kEveryAnswer,
                      headers);
  // Statuses without a body have no length either.
  if (status != 204 && status != 304) {
    head_ += fmt::format("Content-Length: {}\r\n", body == nullptr ? 0 : body->size());
  }
  head_ += close_ ? "Connection: close\r\n\r\n" : "\r\n";
  body_ = head_only_ ? nullptr : std::move(body);
  sent_ = 0;
  if (body_ == nullptr || body_->size() <= kShort) {
    begin_answer();
    return;
  }
  state_.turns.ask(this, steady_clock::now(),
                   [self = shared_from_this()] { self->begin_answer(); });
  state_.watch_turns();
}

void Session::begin_answer() {
  give_up_ = steady_clock::now() + state_.limits.answer;
  write_more();
}

void Session::begin_events() {
  if (state_.live.size() >= state_.limits.live) {
    refuse(503, "too many pages are open; close one");
    return;
  }
  head_ = fmt::format(
      "HTTP/1.1 200 OK\r\n{}Content-Type: text/event-stream\r\nCache-Control: "
      "no-store\r\nConnection: close\r\n\r\n",
      kEveryAnswer);
  close_ = true;
  body_ = nullptr;
  sent_ = 0;
  give_up_ = steady_clock::time_point::max();
  if (!head_only_) {
    is_live_ = true;
    state_.live.insert(this);
    ++state_.watchers;
    // Milliseconds after which a page reconnects to a lost server.
    head_ += "retry: 2000\n\n";
    watch_for_end();
  }
  write_more();
}

// A client of events sends nothing more. Any input is dropped; its end closes the connection.
void Session::watch_for_end() {
  stream_.expires_never();
  stream_.async_read_some(asio::buffer(discarded_),
                          [self = shared_from_this()](const Error& error, std::size_t bytes) {
                            self->discarded_bytes_ += bytes;
                            if (error || self->discarded_bytes_ > kMostDiscarded) {
                              self->stream_.close();
                            } else {
                              self->watch_for_end();
                            }
                          });
}

void Session::tell(bool beat) {
  if (writing_) return;
  const Content& content = state_.content;
  head_.clear();
  if (content.now.bytes != nullptr && sent_now_tag_ != content.now.tag) {
    sent_now_tag_ = content.now.tag;
    head_ += "event: now\ndata: ";
    base::append_quoted(head_, *content.now.bytes);
    head_ += "\n\n";
  }
  const Text& part = content.changing_part.plain;
  if (part.bytes != nullptr && sent_part_tag_ != part.tag) {
    sent_part_tag_ = part.tag;
    head_ += fmt::format("event: page\ndata: {}\n\n", part.tag);
  }
  if (head_.empty() && beat) head_ = ": it goes on\n\n";
  if (head_.empty()) return;
  sent_ = 0;
  write_more();
}

void Session::write_more() {
  const std::size_t body_size = body_ == nullptr ? 0 : body_->size();
  if (sent_ == head_.size() + body_size) {
    writing_ = false;
    on_written();
    return;
  }
  writing_ = true;
  if (steady_clock::now() > give_up_) {
    stream_.close();
    return;
  }
  std::array<asio::const_buffer, 2> parts;
  const std::size_t of_head = std::min(sent_, head_.size());
  parts[0] = asio::buffer(head_) + of_head;
  if (body_size > 0) {
    parts[1] = asio::buffer(asio::buffer(*body_) + (sent_ - of_head), kMostAtOnce);
  }
  stream_.expires_after(state_.limits.write);
  stream_.async_write_some(parts,
                           [self = shared_from_this()](const Error& error, std::size_t bytes) {
                             if (error) {
                               self->stream_.close();
                               return;
                             }
                             self->sent_ += bytes;
                             self->state_.turns.took(self.get(), steady_clock::now());
                             self->write_more();
                           });
}

void Session::on_written() {
  if (body_ != nullptr) state_.turns.leave(this, steady_clock::now());
  body_ = nullptr;
  if (is_live_) {
    tell(false);
  } else if (close_) {
    linger();
  } else {
    read();
  }
}

// Closing with unread input would reset the connection and might lose the answer, so input is read
// for a moment.
void Session::linger() {
  Error ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(std::chrono::seconds(2));
  discard();
}

void Session::discard() {
  stream_.async_read_some(asio::buffer(discarded_),
                          [self = shared_from_this()](const Error& error, std::size_t bytes) {
                            self->discarded_bytes_ += bytes;
                            if (!error && self->discarded_bytes_ <= kMostDiscarded) self->discard();
                          });
}

}  // namespace petlab::serving
