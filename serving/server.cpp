#include "serving/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cctype>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "base/signals.h"
#include "serving/session.h"

namespace petlab::serving {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kNextLook{2};

tcp::endpoint endpoint_of(asio::io_context& io, const ServerOptions& options) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(options.host, error);
  if (!error) return {address, options.port};
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(options.host, "", tcp::resolver::passive, error);
  if (error || found.empty()) {
    throw std::runtime_error(
        fmt::format("--host is '{}', which has no address ({}); must be an address of this "
                    "machine, such as 127.0.0.1, or 0.0.0.0 for all of them",
                    options.host, error.message()));
  }
  return {found.begin()->endpoint().address(), options.port};
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The names by which other machines reach this one: the host name, and with the network's domain.
std::vector<std::string> own_names(asio::io_context& io, const std::string& host) {
  std::vector<std::string> names = {lower_case(host)};
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return names;
  names.push_back(lower_case(name.data()));
  tcp::resolver resolver(io);
  boost::system::error_code error;
  const auto found = resolver.resolve(name.data(), "", tcp::resolver::canonical_name, error);
  if (!error && !found.empty()) names.push_back(lower_case(found.begin()->host_name()));
  return names;
}

void listen_on(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  acceptor.open(endpoint.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(endpoint);
  acceptor.listen(tcp::acceptor::max_listen_connections);
}

}  // namespace

void Server::State::accept() {
  acceptor.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      // Retry later, for example when no descriptor is free.
      again.expires_after(std::chrono::milliseconds(100));
      again.async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled) accept();
      });
      return;
    }
    if (sessions.size() < limits.connections) {
      std::make_shared<Session>(std::move(socket), *this)->start();
    }
    accept();
  });
}

void Server::State::beat() {
  heartbeat.expires_after(limits.heartbeat);
  heartbeat.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    for (Session* session : live) session->tell(true);
    beat();
  });
}

void Server::State::watch_turns() {
  if (turns_watched || !turns.somebody_waits()) return;
  turns_watched = true;
  next_look.expires_after(kNextLook);
  next_look.async_wait([this](const boost::system::error_code& error) {
    turns_watched = false;
    if (error) return;
    turns.look(steady_clock::now());
    watch_turns();
  });
}

Server::Server(const ServerOptions& options) : state_(std::make_unique<State>()) {
  state_->limits = options.limits;
  state_->turns = Turns(options.limits.patience, options.limits.turn);
  state_->host = options.host;
  const tcp::endpoint wanted = endpoint_of(state_->io, options);
  try {
    try {
      listen_on(state_->acceptor, wanted);
    } catch (const boost::system::system_error& error) {
      if (!options.other_port_will_do || error.code() != asio::error::address_in_use) throw;
      state_->acceptor.close();
      listen_on(state_->acceptor, {wanted.address(), 0});
    }
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error(
        fmt::format("cannot listen on {} port {}: {}; choose another port with --port (0: a free "
                    "one), or another address of this machine with --host",
                    options.host, options.port, error.code().message()));
  }
  state_->port = state_->acceptor.local_endpoint().port();
  const bool for_others = !wanted.address().is_loopback();
  state_->rules.any_address = for_others;
  if (for_others) state_->rules.names = own_names(state_->io, options.host);
  if (for_others || options.token) {
    state_->rules.token = make_token();
    state_->rules.cookie = fmt::format("petlab_{}", state_->port);
  }
}

Server::~Server() {
  // Waiting sessions need this state, and must not start when another session ends.
  state_->turns.clear();
}

std::string Server::address() const {
  // A server on all addresses is opened by the machine's name.
  const asio::ip::address bound = state_->acceptor.local_endpoint().address();
  std::string host = bound.is_v6() && state_->host.find(':') != std::string::npos
                         ? "[" + state_->host + "]"
                         : state_->host;
  if (bound.is_unspecified() && state_->rules.names.size() > 1) host = state_->rules.names.back();
  const std::string token = state_->rules.token.empty() ? "" : "?token=" + state_->rules.token;
  return fmt::format("http://{}:{}/{}", host, state_->port, token);
}

void Server::run() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!base::is_ignored(signal)) state_->signals.add(signal);
  }
  state_->signals.async_wait([this](const boost::system::error_code& error, int) {
    if (!error) state_->io.stop();
  });
  state_->accept();
  state_->beat();
  state_->io.run();
}

void Server::stop() { state_->io.stop(); }

void Server::publish(Content content) {
  asio::post(state_->io, [state = state_.get(), content = std::move(content)]() mutable {
    state->content = std::move(content);
    for (Session* session : state->live) session->tell(false);
  });
}

bool Server::is_watched() const {
  if (state_->watchers > 0) return true;
  const steady_clock::duration since(state_->asked_at);
  return since.count() > 0 &&
         steady_clock::now().time_since_epoch() - since < state_->limits.watched;
}

}  // namespace petlab::serving
