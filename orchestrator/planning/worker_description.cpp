#include "orchestrator/planning/worker_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/shallow_json.h"
#include "orchestrator/host/error.h"

namespace petlab::orchestrator {

namespace asio = boost::asio;
namespace process = boost::process::v2;

WorkerDescription describe_worker(const WorkerCommand& worker, std::chrono::milliseconds timeout) {
  WorkerDescription description;
  description.name = worker.text();
  asio::io_context loop;
  asio::readable_pipe output(loop);
  const std::vector<std::string> arguments = worker.arguments_and("--describe");
  process::process child(loop.get_executor(), process::filesystem::path(worker.program.string()),
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
  const nlohmann::json object = base::shallow_json_or_none(text);
  if (!object.is_object()) return description;
  const auto refuse = [&](const char* key, const nlohmann::json& found, const char* wanted) {
    throw Error(
        fmt::format("{} --describe: {} is {}, must be {} (docs/worker.md)", worker.text(), key,
                    found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), wanted));
  };
  const auto read_text = [&](const char* key, std::string& text_of) {
    const auto found = object.find(key);
    if (found == object.end()) return;
    if (!found->is_string()) refuse(key, *found, "a text");
    text_of = found->get<std::string>();
  };
  read_text("name", description.name);
  read_text("version", description.version);
  read_text("numerics", description.numerics);
  if (const auto found = object.find("protocol"); found != object.end()) {
    if (!found->is_number_integer()) refuse("protocol", *found, "a whole number");
    description.protocol = found->get<std::int64_t>();
  }
  if (const auto devices = object.find("devices"); devices != object.end()) {
    const bool texts =
        devices->is_array() && std::all_of(devices->begin(), devices->end(),
                                           [](const auto& device) { return device.is_string(); });
    if (!texts) refuse("devices", *devices, "a list of texts");
    description.devices = devices->get<std::vector<std::string>>();
  }
  if (description.protocol != 1) {
    throw Error(
        fmt::format("{}: the worker speaks protocol {}, this petlab speaks 1 (docs/worker.md)",
                    worker.text(), description.protocol));
  }
  return description;
}

}  // namespace petlab::orchestrator
