#include "fetch/hub.h"

#include <fmt/format.h>
#include <nettle/sha1.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/files.h"
#include "base/shallow_json.h"
#include "base/trimmed.h"
#include "fetch/error.h"
#include "sweeps/backbone_files.h"
#include "sweeps/hub_cache.h"

namespace petlab::fetch {
namespace {

// A page has a thousand entries, more than the top level of any model.
constexpr int kMostPages = 100;

bool is_hexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_true(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

std::string token_of(const sweeps::Environment& environment, const std::filesystem::path& cache) {
  if (const auto token = environment("HF_TOKEN"); token && !base::trimmed(*token).empty()) {
    return std::string(base::trimmed(*token));
  }
  std::filesystem::path file = environment("HF_TOKEN_PATH").value_or("");
  if (file.empty()) {
    const std::string home = environment("HF_HOME").value_or("");
    file = (home.empty() ? cache.parent_path() : std::filesystem::path(home)) / "token";
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";
  return std::string(base::trimmed(base::read_file(file, 1 << 16)));
}

// git's blob id of a file: SHA-1 of a short header and the content.
std::string git_blob_id(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  sha1_ctx context;
  sha1_init(&context);
  const auto add = [&](const char* bytes, std::size_t count) {
    sha1_update(&context, count, reinterpret_cast<const std::uint8_t*>(bytes));
  };
  const std::string header = fmt::format("blob {}", size);
  add(header.c_str(), header.size() + 1);
  std::array<char, 65536> buffer;
  while (in) {
    in.read(buffer.data(), buffer.size());
    add(buffer.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (error || in.bad() || !in.eof()) {
    throw Error(fmt::format("{}: cannot be read", file.string()));
  }
  std::array<std::uint8_t, SHA1_DIGEST_SIZE> digest{};
  sha1_digest(&context, digest.size(), digest.data());
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

void check_name(const std::string& name) {
  const auto slash = name.find('/');
  const auto fits = [](std::string_view part) {
    return !part.empty() && part.size() <= 96 && part.front() != '.' && part.front() != '-' &&
           part.back() != '.' && part.back() != '-' && part.find("--") == std::string_view::npos &&
           part.find("..") == std::string_view::npos &&
           part.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
               "-._") == std::string_view::npos;
  };
  const std::string_view all = name;
  if (slash == std::string::npos ? fits(all)
                                 : fits(all.substr(0, slash)) && fits(all.substr(slash + 1))) {
    return;
  }
  throw std::invalid_argument(
      fmt::format("the backbone is '{}', must be the name of a model on the hub, such as "
                  "FacebookAI/roberta-base",
                  name));
}

// The address of the next page, from `<URL>; rel="next"`.
std::string next_page(const std::string& link) {
  const auto rel = link.find("rel=\"next\"");
  if (rel == std::string::npos) return "";
  const auto begin = link.rfind('<', rel);
  const auto end = link.find('>', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos || end > rel) return "";
  return link.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string folder_name(const std::string& name) {
  std::string folder = "models--" + name;
  if (const auto slash = folder.find('/'); slash != std::string::npos) {
    folder.replace(slash, 1, "--");
  }
  return folder;
}

bool is_commit(std::string_view revision) { return is_hexadecimal(revision, 40); }

HubSettings hub_settings(const sweeps::Environment& environment) {
  HubSettings settings;
  if (const std::string endpoint = environment("HF_ENDPOINT").value_or(""); !endpoint.empty()) {
    settings.endpoint = endpoint.substr(0, endpoint.find_last_not_of('/') + 1);
    if (!endpoint.starts_with("https://") && !endpoint.starts_with("http://")) {
      throw std::invalid_argument(fmt::format(
          "HF_ENDPOINT is '{}', must be a URL such as https://huggingface.co", endpoint));
    }
  }
  settings.cache = sweeps::find_hub_cache(environment);
  settings.token = token_of(environment, settings.cache);
  if (settings.token.find_first_of(" \t\r\n") != std::string::npos) {
    throw std::invalid_argument("HF_TOKEN, or the token file, is not a single word");
  }
  const auto named = [&](const char* name) { return is_true(environment(name).value_or("")); };
  settings.offline = named("HF_HUB_OFFLINE") || named("TRANSFORMERS_OFFLINE");
  return settings;
}

std::vector<HubFile> parse_listing(std::string_view text, const std::string& name) {
  std::vector<HubFile> files;
  const nlohmann::json entries = base::shallow_json_or_none(text);
  const auto refuse = [&](const std::string& what) {
    throw Error(
        fmt::format("{}: found {}, expected the hub's list of files (HF_ENDPOINT sets the server)",
                    name, what));
  };
  if (!entries.is_array()) refuse("no list");
  for (const nlohmann::json& entry : entries) {
    if (!entry.is_object()) refuse("an entry that is not an object");
    if (entry.value("type", nlohmann::json()) != "file") continue;
    HubFile file;
    try {
      const nlohmann::json& large = entry.contains("lfs") ? entry.at("lfs") : nlohmann::json();
      entry.at("path").get_to(file.name);
      (large.is_object() ? large : entry).at("size").get_to(file.size);
      (large.is_object() ? large : entry).at("oid").get_to(file.etag);
      if (file.etag.starts_with("sha256:")) file.etag.erase(0, 7);
      if (std::any_of(file.name.begin(), file.name.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
        refuse("a name with a control character");
      }
      if (!is_hexadecimal(file.etag, large.is_object() ? 64 : 40)) {
        refuse(fmt::format("the digest '{}' of {}", file.etag, file.name));
      }
    } catch (const nlohmann::json::exception&) {
      refuse(fmt::format("the entry {}",
                         entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<HubFile> files_to_fetch(const std::vector<HubFile>& listing, const std::string& name) {
  std::vector<HubFile> wanted;
  const auto add = [&](std::string_view file) {
    const auto found = std::find_if(listing.begin(), listing.end(),
                                    [&](const HubFile& each) { return each.name == file; });
    if (found != listing.end()) wanted.push_back(*found);
    return found != listing.end();
  };
  for (const std::string_view file : sweeps::kBackboneFiles) add(file);
  const auto has = [&](std::string_view file) {
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const HubFile& each) { return each.name == file; });
  };
  const bool weights = std::any_of(sweeps::kWeightFiles.begin(), sweeps::kWeightFiles.end(), add);
  std::string found;
  for (const HubFile& file : listing) found += (found.empty() ? "" : ", ") + file.name;
  const auto refuse = [&](const char* what) {
    throw Error(
        fmt::format("{}: found {}, expected {}", name, found.empty() ? "no files" : found, what));
  };
  if (!has("config.json")) refuse("a config.json, which every backbone has");
  if (!weights) {
    refuse(
        "weights that petlab reads: model.safetensors or pytorch_model.bin, or the index of one "
        "in shards");
  }
  const bool tokenizer = has("vocab.txt") || (has("vocab.json") && has("merges.txt")) ||
                         has("tokenizer.json") || has("spiece.model") || has("tokenizer.model") ||
                         has("sentencepiece.bpe.model");
  if (!tokenizer) {
    refuse(
        "a tokenizer: vocab.txt, vocab.json with merges.txt, tokenizer.json or a "
        "SentencePiece model");
  }
  return wanted;
}

bool has_digest(const std::filesystem::path& file, const std::string& etag,
                sweeps::FileDigests& digests) {
  if (etag.size() == 64) return digests.of(file) == "sha256:" + etag;
  return git_blob_id(file) == etag;
}

HubRepository::HubRepository(Http& http, HubSettings settings, std::string name)
    : http_(http), settings_(std::move(settings)), name_(std::move(name)) {
  check_name(name_);
}

template <typename Body>
auto HubRepository::ask(Body&& body) const {
  try {
    return body();
  } catch (const HttpError& error) {
    const std::string page = fmt::format("{}/{}", settings_.endpoint, name_);
    if (error.code == "GatedRepo" || (error.status == 403 && error.code.empty())) {
      throw Error(
          fmt::format("{}: access is restricted: accept the conditions on {}, and set HF_TOKEN to "
                      "your token ({}/settings/tokens){}",
                      name_, page, settings_.endpoint,
                      settings_.token.empty() ? "" : "; the current token has no access"));
    }
    if (error.code == "RevisionNotFound") {
      throw Error(
          fmt::format("{}: the revision does not exist; --revision must be a branch, a tag or a "
                      "commit of {}/commits/main",
                      name_, page));
    }
    if (error.code == "EntryNotFound") {
      throw Error(
          fmt::format("{}: a file that the hub listed no longer exists: {}", name_, error.what()));
    }
    if (error.status == 401 || error.status == 404) {
      throw Error(
          fmt::format("{}: the model is not at {}, or it is private ({}); names have an owner "
                      "before the slash, as in FacebookAI/roberta-base",
                      name_, settings_.endpoint,
                      settings_.token.empty() ? "set HF_TOKEN to a token that may read it"
                                              : "the current token may not read it"));
    }
    throw;
  } catch (const NoConnection& error) {
    throw NoConnection(fmt::format(
        "{}: {} cannot be reached: {}; set HF_ENDPOINT to a mirror or https_proxy to a proxy; "
        "without a network, fetch it on another machine and copy {} here",
        name_, settings_.endpoint, error.what(), (settings_.cache / folder_name(name_)).string()));
  }
}

std::string HubRepository::resolve(const std::string& revision) const {
  return ask([&] {
    const Answer answer = http_.get(
        fmt::format("{}/api/models/{}/revision/{}", settings_.endpoint, name_, url_part(revision)),
        settings_.token);
    const nlohmann::json model = base::shallow_json_or_none(answer.body);
    const std::string commit =
        model.is_object() && model.contains("sha") && model["sha"].is_string()
            ? model["sha"].get<std::string>()
            : "";
    if (!is_commit(commit)) {
      throw Error(fmt::format("{}: {} names no commit of revision {} (HF_ENDPOINT sets the server)",
                              name_, settings_.endpoint, revision));
    }
    return commit;
  });
}

std::vector<HubFile> HubRepository::list(const std::string& commit) const {
  return ask([&] {
    std::vector<HubFile> files;
    std::string page = fmt::format("{}/api/models/{}/tree/{}", settings_.endpoint, name_, commit);
    for (int pages = 0; !page.empty() && pages < kMostPages; ++pages) {
      // The token is not sent to other servers.
      const bool same_server = page.starts_with(settings_.endpoint + "/");
      const Answer answer = http_.get(page, same_server ? settings_.token : "");
      const std::vector<HubFile> more = parse_listing(answer.body, name_);
      files.insert(files.end(), more.begin(), more.end());
      const auto link = answer.headers.find("link");
      page = link == answer.headers.end() ? "" : next_page(link->second);
    }
    return files;
  });
}

void HubRepository::download(const std::string& commit, const HubFile& file,
                             const std::filesystem::path& to) const {
  ask([&] {
    Download wanted;
    wanted.url =
        fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, name_, commit, url_part(file.name));
    wanted.token = settings_.token;
    wanted.name = file.name;
    wanted.size = file.size;
    wanted.file = to;
    http_.download(wanted);
    return 0;
  });
}

}  // namespace petlab::fetch
