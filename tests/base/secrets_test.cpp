#include "base/secrets.h"

#include <string>

#include "tests/support/catch.h"

using petlab::base::has_secret;
using petlab::base::is_secret_file;

namespace {

// Joined here, so that no scanner takes this file for one with keys.
std::string joined(const char* begin, const char* end) { return std::string(begin) + end; }

}  // namespace

TEST_CASE("Files that usually hold secrets are known by their names", "[base]") {
  for (const char* path :
       {".env", "a/b/.env", ".env.local", "prod.env", ".envrc", "keys/server.pem", "id_rsa",
        "id_ed25519.pub", "credentials", "aws-credentials.json", "my_secrets.yaml", ".netrc",
        "SECRETS.TOML", "secrets/prod.yaml", "a/.aws/config", ".git-credentials", "kaggle.json",
        "tls.key"}) {
    INFO(path);
    CHECK(is_secret_file(path));
  }
  for (const char* path : {"worker.py", "environment.yaml", "env.py", "secretary.py", "keyboard.py",
                           "tokenizer.json", "monkey.py", "key_value.py", ".env/config.py.txt"}) {
    INFO(path);
    CHECK_FALSE(is_secret_file(path));
  }
}

TEST_CASE("Lines that look like secrets are found", "[base]") {
  for (const std::string& line : {
           joined("-----BEGIN RSA PRIV", "ATE KEY-----"),
           joined("+token = 'ghp", "_0123456789abcdefghij0123456789abcdef'"),
           joined("login(\"hf", "_AbCdEfGhIjKlMnOpQrStUvWx12\")"),
           joined("aws AK", "IAIOSFODNN7EXAMPLE1"),
           joined("+export WANDB_API_KEY=", "0123456789abcdef0123456789abcdef01234567"),
           joined("  \"api_key\": ", "\"a1b2c3d4e5\","),
           joined("password = ", "\"correct horse\""),
           joined("  db_passwd: ", "hunter22"),
           joined("os.environ['HF_TOKEN'] = ", "'abcdef0123456789'"),
           joined("-token: str = ", "\"abcd1234efgh\""),
           joined("Authorization: Bearer ", "abcdef0123456789"),
           joined("url = postgres://me:", "pw1@host/db"),
           joined("--api-key ", "abcdef0123456789"),
           joined("secret_key2='", "abc123def456'"),
           joined("+MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7", "MaGzvZ5rXk1+0a9bWq"),
           joined("sk", "-proj-0123456789abcdefghijkl"),
       }) {
    INFO(line);
    CHECK(has_secret(line));
    CHECK(has_secret("first line\n" + line + "\nlast"));
  }
}

TEST_CASE("Lines of usual training code do not look like secrets", "[base]") {
  for (const char* line : {
           "tokenizer = AutoTokenizer.from_pretrained(\"gpt2\")",
           "max_tokens = 512",
           "pad_token=\"[PAD]\"",
           "sep_token = \"<|endoftext|>\"",
           "token_ids = batch[\"input_ids\"]",
           "hf_token = os.environ[\"HF_TOKEN\"]",
           "token = os.environ[\"HF_TOKEN\"]",
           "password = getpass.getpass()",
           "api_key: ${API_KEY}",
           "for key, value in items:",
           "key = \"validation\"",
           "key_layer = self.key(hidden_states)",
           "    value = self.transpose(self.value(x), 12, 64)",
           "+learning_rate = 1e-4",
           "index 3b18e51..a7c9f02 100644",
           "url = https://example.org/a@b:c",
           "commit 0123456789abcdef0123456789abcdef01234567",
           "see RFC 7515 for tokens",
           "sk-learn is a library",
       }) {
    INFO(line);
    CHECK_FALSE(has_secret(line));
  }
}
