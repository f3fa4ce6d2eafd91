#include "base/secrets.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace petlab::base {
namespace {

constexpr auto npos = std::string_view::npos;

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return made;
}

bool is_ascii_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_ascii_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_alphanumeric(char c) { return is_ascii_letter(c) || is_ascii_digit(c); }
// The characters of tokens, keys and base64.
bool is_of_token(char c) {
  return is_alphanumeric(c) || std::string_view("_-+/=.~").find(c) != npos;
}

bool has_letter_and_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_ascii_letter) &&
         std::any_of(text.begin(), text.end(), is_ascii_digit);
}

// Tokens by the prefix that their issuer gives them, and their least length after it.
struct Issued {
  std::string_view prefix;
  std::size_t length;
};
constexpr Issued kIssued[] = {
    {"AKIA", 16},  {"ASIA", 16},        {"AIza", 30},           {"eyJ", 30},
    {"ghp_", 20},  {"gho_", 20},        {"ghu_", 20},           {"ghs_", 20},
    {"ghr_", 20},  {"github_pat_", 20}, {"glpat-", 16},         {"hf_", 20},
    {"sk-", 20},   {"sk_live_", 16},    {"rk_live_", 16},       {"xoxb-", 10},
    {"xoxa-", 10}, {"xoxp-", 10},       {"xoxr-", 10},          {"xoxs-", 10},
    {"pypi-", 30}, {"npm_", 30},        {"dop_v1_", 30},        {"SG.", 30},
    {"ya29.", 20}, {"wandb_v1_", 20},   {"AGE-SECRET-KEY-", 20}};

bool has_issued_token(std::string_view line) {
  for (const Issued& issued : kIssued) {
    for (std::size_t at = line.find(issued.prefix); at != npos;
         at = line.find(issued.prefix, at + 1)) {
      if (at > 0 && (is_alphanumeric(line[at - 1]) || line[at - 1] == '_')) continue;
      const std::size_t begin = at + issued.prefix.size();
      std::size_t end = begin;
      while (end < line.size() && is_of_token(line[end])) ++end;
      if (end - begin >= issued.length && has_letter_and_digit(line.substr(at, end - at))) {
        return true;
      }
    }
  }
  return false;
}

// `scheme://user:password@host`
bool has_password_in_url(std::string_view line) {
  for (std::size_t at = line.find("://"); at != npos; at = line.find("://", at + 3)) {
    const std::string_view rest = line.substr(at + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/ \t\"'<>"));
    const std::size_t end = authority.rfind('@');
    const std::size_t colon = authority.find(':');
    if (end != npos && colon != npos && colon + 1 < end && authority[colon + 1] != '{' &&
        authority[colon + 1] != '$') {
      return true;
    }
  }
  return false;
}

// A line of a private key in PEM without its header.
bool is_body_of_key(std::string_view line) {
  while (!line.empty() && std::string_view("+- \t\r\"',\\").find(line.front()) != npos) {
    line.remove_prefix(1);
  }
  while (!line.empty() && std::string_view(" \t\r\"',\\n").find(line.back()) != npos) {
    line.remove_suffix(1);
  }
  return line.size() >= 60 && has_letter_and_digit(line) &&
         std::all_of(line.begin(), line.end(),
                     [](char c) { return is_alphanumeric(c) || c == '+' || c == '/' || c == '='; });
}

// How a name says that its value is secret.
enum class NameKind { plain, key, token, password };

bool ends_in_word(std::string_view name, std::string_view word) {
  if (!name.ends_with(word)) return false;
  return name.size() == word.size() || !is_ascii_letter(name[name.size() - word.size() - 1]);
}

// `name` is in lower case, with `-` and `.` as `_`.
NameKind kind_of_name(std::string_view name) {
  while (!name.empty() && (is_ascii_digit(name.back()) || name.back() == '_'))
    name.remove_suffix(1);
  for (const std::string_view word :
       {"password", "passwd", "passphrase", "pwd", "dbpass", "credential", "credentials"}) {
    if (name.ends_with(word)) return NameKind::password;
  }
  for (const std::string_view word :
       {"apikey", "api_key", "secret", "secret_key", "secretkey", "access_key", "accesskey",
        "private_key", "privatekey", "auth_token", "authtoken", "accesstoken", "client_secret",
        "authorization", "bearer"}) {
    if (name.ends_with(word)) return NameKind::token;
  }
  if (ends_in_word(name, "token") || ends_in_word(name, "pat")) return NameKind::token;
  return ends_in_word(name, "key") ? NameKind::key : NameKind::plain;
}

// True if `value`, what follows a name and its `=` or `:`, is written out rather than computed.
bool is_secret_value(NameKind kind, std::string_view value) {
  const std::size_t begin = value.find_first_not_of(" \t");
  if (begin == npos) return false;
  value.remove_prefix(begin);
  if (value.size() > 7 && lower(value.substr(0, 7)) == "bearer ") value.remove_prefix(7);
  // Prefixes of Python's string literals.
  std::size_t quote = 0;
  while (quote < 2 && quote < value.size() && is_ascii_letter(value[quote])) ++quote;
  if (quote < value.size() && (value[quote] == '"' || value[quote] == '\'')) {
    value.remove_prefix(quote);
  }
  const char opening = value.front();
  const bool quoted = opening == '"' || opening == '\'';
  std::string_view text;
  if (quoted) {
    const std::size_t end = value.find(opening, 1);
    text = value.substr(1, end == npos ? npos : end - 1);
  } else {
    std::size_t end = value.find_first_of(" \t,;#)}]\r");
    text = value.substr(0, end);
  }
  if (text.empty() || text.front() == '$' || text.front() == '{' || text.front() == '<') {
    return false;  // `$TOKEN`, `{token}` and `<token>` name a secret but contain none
  }
  if (kind == NameKind::password && quoted) return true;
  const std::size_t least = kind == NameKind::key ? 16 : 8;
  return text.size() >= least && has_letter_and_digit(text) &&
         std::all_of(text.begin(), text.end(), is_of_token);
}

// `NAME = value`, `"name": "value"`, `name=value`, `--name value`.
bool has_assigned_secret(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    if (!is_ascii_letter(line[at]) && line[at] != '_') {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() &&
           (is_alphanumeric(line[end]) || std::string_view("_-.").find(line[end]) != npos)) {
      ++end;
    }
    std::string name = lower(line.substr(at, end - at));
    std::replace(name.begin(), name.end(), '-', '_');
    std::replace(name.begin(), name.end(), '.', '_');
    const bool is_option = at >= 2 && line.substr(at - 2, 2) == "--";
    at = end;
    const NameKind kind = kind_of_name(name);
    if (kind == NameKind::plain) continue;
    std::size_t after = end;
    if (after < line.size() && (line[after] == '"' || line[after] == '\'' || line[after] == ']')) {
      ++after;
    }
    if (after < line.size() && line[after] == ']') ++after;
    // A type annotation: `token: str = "…"`.
    std::size_t sign = line.find_first_not_of(" \t", after);
    if (sign == npos) continue;
    if (line[sign] == ':' || line[sign] == '=') {
      if (is_secret_value(kind, line.substr(line.find_first_not_of(":=", sign) == npos
                                                ? line.size()
                                                : line.find_first_not_of(":=", sign)))) {
        return true;
      }
      const std::size_t equals = line[sign] == ':' ? line.find('=', sign) : npos;
      if (equals != npos && is_secret_value(kind, line.substr(equals + 1))) return true;
    } else if (is_option && sign > after && is_secret_value(kind, line.substr(sign))) {
      return true;
    }
  }
  return false;
}

bool is_secret_line(std::string_view line) {
  return (line.find("-----BEGIN ") != npos && line.find("PRIVATE KEY") != npos) ||
         is_body_of_key(line) || has_issued_token(line) || has_password_in_url(line) ||
         has_assigned_secret(line);
}

}  // namespace

bool is_secret_file(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == npos ? "/" : "/" + lower(path.substr(0, slash)) + "/";
  for (const std::string_view part :
       {"/secrets/", "/.secrets/", "/credentials/", "/.ssh/", "/.aws/", "/.gnupg/"}) {
    if (folder.find(part) != std::string::npos) return true;
  }
  const std::string name = lower(path.substr(slash + 1));
  if (name == ".env" || name.starts_with(".env.") || name.starts_with(".env-") ||
      name.starts_with(".env_") || name == ".envrc") {
    return true;
  }
  for (const std::string_view end : {".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore",
                                     ".kdbx", ".ppk", ".asc", ".gpg", ".token", ".secret"}) {
    if (name.ends_with(end)) return true;
  }
  for (const std::string_view whole :
       {".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials",
        ".dockercfg", "kubeconfig", "kaggle.json", "token", "api_key", "apikey"}) {
    if (name == whole) return true;
  }
  for (const std::string_view begin : {"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}) {
    if (name.starts_with(begin)) return true;
  }
  // Whole words of a name: `my-secrets.yaml`, but not `secretary.py`.
  for (const std::string_view word :
       {"secret", "secrets", "credential", "credentials", "password", "passwords"}) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      const bool begins = at == 0 || !is_ascii_letter(name[at - 1]);
      if (begins && (end == name.size() || !is_ascii_letter(name[end]))) return true;
    }
  }
  return false;
}

bool has_secret(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (is_secret_line(text.substr(0, end))) return true;
    if (end == npos) return false;
    text.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace petlab::base
