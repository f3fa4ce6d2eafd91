#include "cli/setup/fetch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "base/files.h"
#include "base/programs.h"
#include "cli/options/duration_option.h"

namespace petlab::cli {
namespace {

void add_retries(CLI::App& app, FetchArguments& arguments) {
  app.add_option("--retries", arguments.retries,
                 "failures in a row without a byte before giving up (default: 5)")
      ->check(CLI::Range(0, 1000));
  add_duration(app, "--retry-delay", arguments.retry_delay,
               "wait before a retry, doubled each time (default: 1s)");
}

// Replaces this process by the program `name` next to it, with the same arguments.
[[noreturn]] void become(const char* name) {
  // Each argument ends with a zero byte.
  std::string words = base::read_file("/proc/self/cmdline", std::size_t{64} << 20);
  std::vector<char*> pointers;
  for (std::size_t at = 0; at < words.size(); at += std::strlen(&words[at]) + 1) {
    pointers.push_back(&words[at]);
  }
  pointers.push_back(nullptr);
  const std::string program = base::next_to_this_program(name).string();
  ::execv(program.c_str(), pointers.data());
  throw std::runtime_error(fmt::format("{}: cannot be run: {}; it is built next to petlab", program,
                                       std::strerror(errno)));
}

}  // namespace

void add_fetch_options(CLI::App& app, FetchArguments& arguments) {
  app.require_subcommand(1);
  app.footer("The same command resumes a download. Nothing is downloaded twice.");
  CLI::App* const backbone =
      app.add_subcommand("backbone", "download the files of a model that petlab reads");
  backbone
      ->add_option("NAME", arguments.backbone,
                   "its name on the Hugging Face hub: FacebookAI/roberta-base")
      ->required();
  backbone->add_option("--revision", arguments.revision,
                       "a branch, tag or commit, also as NAME@REVISION (default: main)");
  backbone->add_option(
      "--into", arguments.into,
      "write plain files to this folder (default: Hugging Face's cache, where sweeps find them)");
  add_retries(*backbone, arguments);
  backbone->footer(
      "Environment: HF_HUB_CACHE, HF_HOME (the cache), HF_ENDPOINT (a mirror), HF_TOKEN (for "
      "gated models), HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT (seconds without a byte, 30), "
      "https_proxy, SSL_CERT_FILE.");
  CLI::App* const data = app.add_subcommand("data", "download the data of built-in tasks");
  data->add_option("TASK", arguments.tasks, "glue (all eight), or some: cola, rte, …")->required();
  data->add_option("--into", arguments.into,
                   "the data folder; files go to glue/ in it (default: PETLAB_HOME/data)");
  data->add_option("--from", arguments.server,
                   "another server (default: https://dl.fbaipublicfiles.com)");
  add_retries(*data, arguments);
  data->footer(
      "Existing files are kept. Environment: HF_HUB_DOWNLOAD_TIMEOUT (seconds without a byte, 30), "
      "https_proxy, SSL_CERT_FILE.");
  backbone->callback([&arguments] { arguments.of_backbone = true; });
}

std::function<int()> make_fetch(CLI::App& app, Streams /*streams*/) {
  // Shared, because the options that write to it outlive this function.
  const auto arguments = std::make_shared<FetchArguments>();
  add_fetch_options(app, *arguments);
  return [arguments]() -> int { become("petlab-fetch"); };
}

}  // namespace petlab::cli
