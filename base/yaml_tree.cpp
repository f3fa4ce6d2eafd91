#include "base/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/line_ends.h"
#include "base/shown.h"
#include "base/utf8.h"

namespace petlab::base {
namespace {

using nlohmann::json;

std::size_t count(const YamlNode& node) {
  std::size_t nodes = 1;
  for (const YamlNode& item : node.items) nodes += count(item);
  return nodes;
}

struct TooMany {
  int line;
};

// Builds the tree from yaml-cpp's events. yaml-cpp's own nodes share aliased parts, so that a short
// file could expand to more values than fit in memory.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(FileProblems& problems) : problems_(problems) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.line = mark.line + 1;
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      problems_.add(mark.line + 1, "YAML", "an alias inside the value it refers to",
                    "an alias of a complete value");
      OnNull(mark, 0);
      return;
    }
    spend(count(found->second), mark.line + 1);
    add(found->second, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.line = mark.line + 1;
    node.text = value;
    node.plain = tag == "?" || tag.empty();
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool key_next = true;              // map
    bool key_good = false;             // map: the next value has a valid key
    std::map<std::string, int> lines;  // map: its keys and their lines
  };

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str") return;
    problems_.add(mark.line + 1, "YAML", "the tag " + excerpt(tag), "no tag");
  }
  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check_tag(mark, tag);
    Open opened;
    opened.node.kind = kind;
    opened.node.line = mark.line + 1;
    opened.anchor = anchor;
    stack_.push_back(std::move(opened));
  }
  void close() {
    Open closed = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(closed.node), closed.anchor);
  }
  void spend(std::size_t nodes, int line) {
    spent_ += nodes;
    if (spent_ > kMaxYamlNodes) throw TooMany{line};
  }
  void add(YamlNode node, YAML::anchor_t anchor) {
    spend(1, node.line);
    if (anchor != 0) {
      spend(count(node), node.line);
      anchored_[anchor] = node;
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.is_sequence()) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key_next) {
      parent.key_next = false;
      parent.key_good = add_key(parent, node);
    } else {
      parent.key_next = true;
      if (parent.key_good) parent.node.items.push_back(std::move(node));
    }
  }
  bool add_key(Open& map, const YamlNode& key) {
    if (!key.is_scalar()) {
      problems_.add(key.line, "YAML", shown(key) + " as a key", "text as a key");
      return false;
    }
    if (key.plain && key.text == "<<") {
      problems_.add_text(key.line,
                         "found the merge key <<, which is not supported; in a sweep file, put "
                         "shared settings under base and differences under variants");
      return false;
    }
    const auto [known, is_new] = map.lines.emplace(key.text, key.line);
    if (!is_new) {
      problems_.add(key.line, "YAML", fmt::format("the key {} twice", shown(key)),
                    fmt::format("it once (first in line {})", known->second));
      return false;
    }
    map.node.keys.emplace_back(key.text, key.line);
    return true;
  }

  FileProblems& problems_;
  YamlNode root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, YamlNode> anchored_;
  std::size_t spent_ = 0;
};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  const auto digits = [&] {
    std::size_t n = 0;
    while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
    text.remove_prefix(n);
    return n;
  };
  const auto skip = [&](std::string_view any_of) {
    if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
  };
  skip("+-");
  const std::size_t whole = digits();
  if (skip(".")) {
    if (digits() == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (skip("eE")) {
    skip("+-");
    if (digits() == 0) return false;
  }
  return text.empty();
}

json scalar_to_json(const YamlNode& node) {
  const std::string& text = node.text;
  if (!node.plain) return text;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const bool negative = text.front() == '-';
  const std::string_view unsigned_text =
      std::string_view(text).substr(negative || text.front() == '+' ? 1 : 0);
  if (all_digits(unsigned_text)) {
    const char* const end = unsigned_text.data() + unsigned_text.size();
    std::uint64_t magnitude = 0;
    if (std::from_chars(unsigned_text.data(), end, magnitude).ec == std::errc()) {
      if (!negative) return magnitude;
      if (magnitude <= 1ULL << 63) return static_cast<std::int64_t>(0 - magnitude);
    }
  }
  if (is_float(text)) {
    const double value = std::strtod(text.c_str(), nullptr);
    if (std::isfinite(value)) return value;
  }
  return text;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size() && i < items.size(); ++i) {
    if (keys[i].first == key) return &items[i];
  }
  return nullptr;
}

YamlNode parse_yaml(std::string_view bytes, FileProblems& problems) {
  const auto line_at = [&](std::size_t offset) {
    return 1 + static_cast<int>(std::count(
                   bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  };
  if (bytes.size() > kMaxYamlBytes) {
    problems.add(1, "YAML", fmt::format("{} bytes", bytes.size()),
                 fmt::format("at most {}", kMaxYamlBytes));
    return {};
  }
  if (const auto bad = first_invalid_utf8(bytes)) {
    problems.add(line_at(*bad), "YAML",
                 fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(bytes[*bad])),
                 "UTF-8");
    return {};
  }
  // yaml-cpp would take a NUL for the end of its input.
  if (const std::size_t nul = bytes.find('\0'); nul != std::string_view::npos) {
    problems.add(line_at(nul), "YAML", "the byte 0x00", "text");
    return {};
  }
  if (lines_end_with_cr(bytes)) {
    problems.add_text(1, kLinesEndWithCr);
    return {};
  }
  Builder builder(problems);
  try {
    std::istringstream in{std::string(bytes)};
    YAML::Parser parser(in);
    if (parser.HandleNextDocument(builder)) {
      YamlNode root = builder.take();
      Builder ignored(problems);
      if (parser.HandleNextDocument(ignored)) {
        problems.add(ignored.take().line, "YAML", "a second document", "one document");
      }
      return root;
    }
    problems.add(1, "YAML", "an empty file", "a group of keys");
  } catch (const YAML::Exception& error) {
    problems.add(error.mark.is_null() ? 1 : error.mark.line + 1, "YAML",
                 fmt::format("a syntax error ({})", excerpt(error.msg)), "YAML");
  } catch (const TooMany& error) {
    problems.add(error.line, "YAML",
                 fmt::format("more than {} values with aliases written out", kMaxYamlNodes),
                 "fewer");
  }
  return {};
}

json to_json(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::scalar:
      return scalar_to_json(node);
    case YamlNode::Kind::sequence: {
      json list = json::array();
      for (const YamlNode& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case YamlNode::Kind::map: {
      json object = json::object();
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        object[node.keys[i].first] = to_json(node.items[i]);
      }
      return object;
    }
  }
  return nullptr;
}

std::string shown(const YamlNode& node) {
  // Lists and groups are named rather than printed.
  if (node.is_sequence()) return shown(json::array());
  if (node.is_map()) return shown(json::object());
  return shown(to_json(node));
}

}  // namespace petlab::base
