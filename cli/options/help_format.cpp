#include "cli/options/help_format.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace petlab::cli {
namespace {

constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kNameWidth = 28;  // width of the column of option names
constexpr std::size_t kCommandWidth = 14;
constexpr std::size_t kMetricWidth = 9;  // width of the column of metrics

// Prints `left`, then `text` in its own column, wrapped between words.
std::string two_columns(std::string left, std::string_view text, std::size_t column) {
  if (left.size() + 1 > column) left += "\n";
  std::size_t used = left.ends_with("\n") ? 0 : left.size();
  std::string result = std::move(left);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (used > column && used + 1 + word.size() > kHelpWidth) {
      result += "\n";
      used = 0;
    }
    if (used <= column) {
      result.append(column - used, ' ');
      used = column;
    } else {
      result += ' ';
      ++used;
    }
    result += word;
    used += word.size();
  }
  return result + "\n";
}

// The placeholder of an option's value: its choices, else its type.
std::string value_text(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // "TEXT:{auto,gpu,cpu}", "INT:INT in [1 - 4]"
  const std::size_t colon = type.find(':');
  if (colon != std::string::npos && type.find('{', colon) == colon + 1) {
    return type.substr(colon + 1);
  }
  const std::string kind = type.substr(0, colon);
  return kind == "INT" || kind == "UINT" ? "N" : kind == "FLOAT" ? "NUMBER" : kind;
}

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (app->get_parent() == nullptr) {
      return "Usage: petlab [--db DATABASE] COMMAND [OPTIONS]\n\n" + make_subcommands(app, mode) +
             "\npetlab help COMMAND shows a command's options; petlab --version the version.\n";
    }
    const std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    std::string result;
    for (const char c : text) {  // collapse repeated empty lines
      if (c != '\n' || !result.ends_with("\n\n")) result += c;
    }
    while (result.ends_with("\n\n")) result.pop_back();
    return result;
  }

  // Omits "Exactly 1 of the following options is required", which the usage line shows.
  std::string make_description(const CLI::App* app) const override {
    return app->get_description().empty() ? std::string() : app->get_description() + "\n";
  }

  std::string make_footer(const CLI::App* app) const override {
    return app->get_footer().empty() ? std::string() : two_columns("", app->get_footer(), 0);
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    return two_columns("  " + sub->get_name(), sub->get_description(), kCommandWidth);
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    if (app->get_parent() != nullptr) return CLI::Formatter::make_subcommands(app, mode);
    std::string result;
    std::string group;
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->get_group() != group) result += sub->get_group() + "\n";
      group = sub->get_group();
      result += make_subcommand(sub);
    }
    return result;
  }

  // Omits alternative spellings, which exist only for compatibility with other programs.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional || !option->get_fnames().empty() || option->get_lnames().size() < 2) {
      return CLI::Formatter::make_option_name(option, is_positional);
    }
    std::string result;
    for (const std::string& name : option->get_snames()) result += "-" + name + ",";
    return result + "--" + option->get_lnames().front();
  }

  // Arguments follow the usage line, which names them.
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (is_positional) {
      std::string result;
      for (const CLI::Option* option : options) result += make_option(option, true);
      return result;
    }
    if (group == kMetricOptions) return by_metric(group, options);
    if (group != kSlurmOptions) {
      return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
    }
    std::string names;
    for (const CLI::Option* option : options) names += make_option_name(option, false) + " ";
    return "\n" + group + ":\n" + two_columns("", names, 2);
  }

  // The names of the options, a line for each metric.
  std::string by_metric(const std::string& group,
                        const std::vector<const CLI::Option*>& options) const {
    std::vector<std::pair<std::string, std::vector<std::string>>> lines;
    for (const CLI::Option* option : options) {
      const std::string& text = option->get_description();
      const std::string subject = text.substr(0, text.find_first_of(",:"));
      auto line = std::find_if(lines.begin(), lines.end(),
                               [&](const auto& other) { return other.first == subject; });
      if (line == lines.end()) line = lines.insert(line, {subject, {}});
      line->second.push_back(make_option_name(option, false));
    }
    std::string result = "\n" + group + ":\n";
    std::string alone;  // options whose subject has no others
    for (const auto& [subject, names] : lines) {
      std::string text;
      for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
      if (names.size() == 1) {
        alone += (alone.empty() ? "" : " ") + text;
      } else {
        result += two_columns("  " + subject, text, kMetricWidth);
      }
    }
    if (!alone.empty()) result += two_columns("  other", alone, kMetricWidth);
    return result;
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string left = "  " + make_option_name(option, is_positional);
    if (!is_positional && option->get_expected_max() > 0) {
      if (const std::string value = value_text(*option); !value.empty()) left += " " + value;
    }
    std::string text = option->get_description();
    if (!is_positional && option->get_required()) text += " (required)";
    if (!option->get_default_str().empty()) {
      text += " (default: " + option->get_default_str() + ")";
    }
    return two_columns(std::move(left), text, kNameWidth);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() { return std::make_shared<HelpFormat>(); }

CLI::Option* advanced(CLI::Option* option) { return option->group("Advanced options"); }

CLI::Option* of_metric(CLI::Option* option) { return option->group(kMetricOptions); }

CLI::Option* for_slurm(CLI::Option* option) { return option->group(kSlurmOptions); }

std::string brief_options_text(const CLI::App& app, const std::string& group) {
  const HelpFormat format;
  std::string result;
  for (const CLI::Option* option :
       app.get_options([&](const CLI::Option* one) { return one->get_group() == group; })) {
    result += format.make_option(option, false);
  }
  return result;
}

}  // namespace petlab::cli
