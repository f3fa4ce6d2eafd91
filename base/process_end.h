#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace petlab::base {

/// Tells when a child of this process has ended. The child is not reaped: its pid stays its own.
class ProcessEnd {
 public:
  explicit ProcessEnd(boost::asio::io_context& loop);
  ~ProcessEnd();
  ProcessEnd(ProcessEnd&&) noexcept;
  ProcessEnd& operator=(ProcessEnd&&) noexcept;

  /// `ended` is called once, from the loop, unless this object is destroyed or watches another
  /// child before.
  void watch(pid_t child, std::function<void()> ended);

 private:
  struct Watch;
  boost::asio::io_context* loop_;
  std::shared_ptr<Watch> watch_;
};

}  // namespace petlab::base
