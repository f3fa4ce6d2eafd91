#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petlab::fuzz {

/// A fuzz target for a reader of users' files: reads an input, and throws std::logic_error if a
/// property does not hold. The reader may refuse the input.
struct FilesTarget {
  std::string_view name;
  void (*run)(std::string_view input);
  /// Inputs to start with. The normal tests run them, and copies that are cut short or have bytes
  /// changed.
  std::vector<std::string> (*seeds)();
};

void safetensors(std::string_view input);
void torch_file(std::string_view input);
/// A pickle alone, which is put into an archive with two storages.
void torch_pickle(std::string_view input);
/// Files separated by 0x01: settings, vocabulary, (BPE: merges,) a text.
void wordpiece_files(std::string_view input);
void byte_bpe_files(std::string_view input);
/// Files separated by 0x01: settings, special_tokens_map.json, added_tokens.json, tokenizer.json, a
/// text.
void tokenizer_json(std::string_view input);
/// A spiece.model, and the same bytes as its character map.
void spiece_model(std::string_view input);
/// config.json of an encoder and of a T5, and the same text as a shard index.
void json_files(std::string_view input);
void artifact(std::string_view input);
/// Files separated by 0x01: the configuration of another library's module, and the configuration of
/// an artifact whose module is read layer by layer.
void foreign_module(std::string_view input);
/// The first byte chooses format and header.
void data_file(std::string_view input);

/// All of them.
std::span<const FilesTarget> files_targets();

}  // namespace petlab::fuzz
