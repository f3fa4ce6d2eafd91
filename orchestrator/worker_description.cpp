#include "orchestrator/worker_description.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "orchestrator/error.h"
#include "sweeps/shallow_json.h"

namespace petlab::orchestrator {

namespace asio = boost::asio;
namespace process = boost::process::v2;

WorkerDescription describe_worker(const std::filesystem::path& program,
                                  std::chrono::milliseconds timeout) {
  WorkerDescription description;
  description.name = program.string();
  asio::io_context loop;
  asio::readable_pipe output(loop);
  const std::vector<std::string> arguments = {"--describe"};
  process::process child(loop.get_executor(), process::filesystem::path(program.string()),
                         arguments, process::process_stdio{nullptr, output, nullptr});
  std::string text;
  int code = -1;
  bool ended = false;
  asio::async_read(output, asio::dynamic_buffer(text, 65536),
                   [](const boost::system::error_code&, std::size_t) {});
  child.async_wait([&](const boost::system::error_code& error, int exit_code) {
    ended = !error;
    code = exit_code;
  });
  loop.run_for(timeout);
  if (!ended || code != 0) return description;
  const nlohmann::json object = sweeps::shallow_json_or_none(text);
  if (!object.is_object()) return description;
  description.name = object.value("name", description.name);
  description.version = object.value("version", "");
  description.protocol = object.value("protocol", std::int64_t{1});
  description.numerics = object.value("numerics", "");
  if (const auto devices = object.find("devices"); devices != object.end()) {
    for (const auto& device : *devices) {
      if (device.is_string()) description.devices.push_back(device.get<std::string>());
    }
  }
  if (description.protocol != 1) {
    throw Error(
        fmt::format("{}: the worker speaks protocol {}, this petlab speaks 1 (docs/worker.md)",
                    program.string(), description.protocol));
  }
  return description;
}

}  // namespace petlab::orchestrator
