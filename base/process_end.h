#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace petlab::base {

/// Reports the end of a child process. Does not reap the child, so that its pid remains valid.
class ProcessEnd {
 public:
  explicit ProcessEnd(boost::asio::io_context& loop);
  ~ProcessEnd();
  ProcessEnd(ProcessEnd&&) noexcept;
  ProcessEnd& operator=(ProcessEnd&&) noexcept;

  /// Calls `ended` once from the loop, unless this object is destroyed or watches another child
  /// first.
  void watch(pid_t child, std::function<void()> ended);

 private:
  struct Watch;
  boost::asio::io_context* loop_;
  std::shared_ptr<Watch> watch_;
};

}  // namespace petlab::base
