// The seeds of all fuzzed formats are in one source because they often build on each other.
#include "tests/fuzz/files_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/shallow_json.h"
#include "base/utf8.h"
#include "protocol/artifact_format.h"
#include "sweeps/catalog.h"
#include "sweeps/trial_config.h"
#include "tests/support/storage_formula.h"
#include "trainer/artifact/artifact.h"
#include "trainer/artifact/foreign_module.h"
#include "trainer/artifact/layered_module.h"
#include "trainer/backbones/encoder_config.h"
#include "trainer/backbones/modernbert_config.h"
#include "trainer/backbones/stored_weights.h"
#include "trainer/backbones/t5_config.h"
#include "trainer/data/rows.h"
#include "trainer/files/error.h"
#include "trainer/files/safetensors.h"
#include "trainer/files/torch_file.h"
#include "trainer/files/utf8.h"
#include "trainer/tokenizers/charsmap.h"
#include "trainer/tokenizers/tokenizer.h"

namespace petlab::fuzz {
namespace {

using trainer::FileBytes;
using trainer::TensorView;

void require(bool holds, const char* property) {
  if (!holds) throw std::logic_error(property);
}

std::shared_ptr<const FileBytes> file_of(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  return FileBytes::own("input", {bytes.begin(), bytes.end()});
}

/// Reads every byte of a tensor, so that the address sanitizer sees each.
void touch(const TensorView& view) {
  std::size_t size = trainer::size_of(view.dtype);
  for (const std::int64_t part : view.shape) size *= static_cast<std::size_t>(part);
  require(view.bytes.size() == size, "a view has the bytes of its shape");
  volatile unsigned sum = 0;
  for (const std::byte byte : view.bytes) sum = sum + std::to_integer<unsigned>(byte);
}

/// Runs `read`. If it refuses the input, its message must be one line that names the input. Returns
/// false then.
template <typename Read>
bool accepted(Read read) {
  try {
    read();
    return true;
  } catch (const std::logic_error&) {
    throw;
  } catch (const std::runtime_error& error) {
    const std::string_view what = error.what();
    require(what.starts_with("input"), "a message begins with the file's name");
    require(what.find('\n') == std::string_view::npos, "a message is one line");
    require(!base::first_invalid_utf8(what), "a message is UTF-8");
    return false;
  }
}

/// The parts of an input between bytes 0x01; the last holds the rest.
std::vector<std::string_view> parts_of(std::string_view input, std::size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const std::size_t end = input.find('\x01');
    parts.push_back(input.substr(0, end));
    input = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  }
  parts.push_back(input);
  return parts;
}

/// Tokenises a text in all ways and checks the properties of the results.
void use_tokenizer(const trainer::Tokenizer& tokenizer, std::string_view text) {
  if (base::first_invalid_utf8(text)) {
    try {
      tokenizer.encode(text);
    } catch (const std::invalid_argument&) {
      return;
    }
    require(false, "a text that is not UTF-8 is refused");
  }
  const auto whole = tokenizer.encode(text, text);
  require(whole.ids.size() == whole.type_ids.size(), "ids and type ids are as many");
  for (const std::int32_t id : whole.ids) {
    require(id >= 0 && id < tokenizer.vocab_size(), "an id is below the vocabulary's size");
  }
  require(tokenizer.encode(text, text).ids == whole.ids, "the same text gives the same ids");
  constexpr std::int64_t kMost = 7;
  const auto cut = tokenizer.encode(text, text, kMost);
  require(cut.ids.size() == std::min<std::size_t>(whole.ids.size(), kMost),
          "truncation keeps as many tokens as it may");
  require(!base::first_invalid_utf8(tokenizer.decode(whole.ids, true)), "decoding gives UTF-8");
}

std::string u16(std::uint16_t value) { return {reinterpret_cast<const char*>(&value), 2}; }
std::string u32(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }

std::string zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string body, directory;
  for (const auto& [name, data] : entries) {
    const auto size = static_cast<std::uint32_t>(data.size());
    const std::string common = u16(0) + u16(0) + u32(0) + u32(0) + u32(size) + u32(size) +
                               u16(static_cast<std::uint16_t>(name.size())) + u16(0);
    directory += "PK\x01\x02" + u16(20) + u16(20) + common + u16(0) + u16(0) + u16(0) + u32(0) +
                 u32(static_cast<std::uint32_t>(body.size())) + name;
    body += "PK\x03\x04" + u16(20) + common + name + data;
  }
  const auto count = static_cast<std::uint16_t>(entries.size());
  return body + directory + "PK\x05\x06" + u32(0) + u16(count) + u16(count) +
         u32(static_cast<std::uint32_t>(directory.size())) +
         u32(static_cast<std::uint32_t>(body.size())) + u16(0);
}

std::string archive(std::string_view pickle) {
  return zip({{"m/data.pkl", std::string(pickle)},
              {"m/data/0", std::string(24, '\x3f')},
              {"m/data/1", std::string(16, '\x40')}});
}

std::vector<std::string> pickle_seeds() {
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n((X" + u32(7) +
                             "storagectorch\nFloatStorage\nX" + u32(1) + "0X" + u32(3) +
                             "cpuK\x06tQK\x01K\x02K\x02\x86K\x02K\x01\x86\x89}tR";
  const std::string name = "X" + u32(1) + "t";
  return {
      "\x80\x02}" + name + tensor + "s.",
      "\x80\x02"
      "ccollections\nOrderedDict\n)Rq" +
          std::string(1, '\0') + "(" + name + tensor + name + "h" + std::string(1, '\0') + "u}b.",
      "\x80\x04\x95" + std::string(8, '\x01') +
          "}\x94(\x8c\x01"
          "a]\x8c\x01"
          "bN\x88\x89G" +
          std::string(8, '\x40') + "J" + u32(7) + "\x8a\x01\x05ue.",
  };
}

std::string safetensors_seed() {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})";
  return u32(static_cast<std::uint32_t>(header.size())) + u32(0) + header + std::string(32, 'x');
}

std::string artifact_seed() {
  trainer::Artifact artifact;
  artifact.trial_id = "t";
  artifact.labels = {{"cola", {"0", "1"}}};
  artifact.values = {{"v", {2}, {1, 2}}};
  artifact.sparse = {{"s", {3}, {0, 5, 0}, {0, 1, 0}}};
  artifact.masks = {{"m", {2, 3}, {1, 0, 1, 1, 0, 0}}};
  artifact.head = {{"h", {1}, {3}}};
  return trainer::artifact_bytes(artifact);
}

const char* const kWordPieceSeed =
    "{\"do_lower_case\": true, \"mask_token\": {\"content\": \"[MASK]\", \"lstrip\": true}}\x01"
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n!\n\x01"
    "Unaffable! [MASK] caf\xc3\xa9 \xe4\xb8\xad";

/// Settings, the vocabulary's tokens beyond the 256 bytes, merges, a text.
const char* const kByteBpeSeed =
    "{\"add_prefix_space\": true}\x01 ab\nabc\nbc\n\x01#version: 0.2\na b\nb c\nab c\n\x01"
    "abc bc, it's 12 \xc3\xa9\n  x <s>";

const char* const kTokenizerJsonSeed =
    "{\"do_lower_case\": true}\x01{\"cls_token\": \"[CLS]\"}\x01{\"[E1]\": 9}\x01"
    "{\"added_tokens\": [{\"id\": 4, \"content\": \"[MASK]\", \"special\": true, \"lstrip\": "
    "true}],"
    "\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": true,"
    "\"handle_chinese_chars\": true}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"
    "\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": "
    "[\"[CLS]\", 2]},"
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"vocab\": {\"[PAD]\": 0,"
    "\"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4, \"un\": 5, \"##able\": 6}}}\x01"
    "Unable [MASK][e1] caf\xc3\xa9 \xe4\xb8\xad";

/// vocab.json of GPT-2's byte alphabet and the given tokens.
std::string byte_vocab(std::string_view more) {
  std::string json = "{";
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    std::string token;
    trainer::append_utf8(prints ? static_cast<char32_t>(byte) : next++, token);
    if (token == "\"" || token == "\\") token.insert(0, 1, '\\');
    json += "\"" + token + "\":" + std::to_string(byte) + ",";
  }
  int id = 256;
  while (!more.empty()) {
    const std::size_t end = more.find('\n');
    json += "\"" + std::string(more.substr(0, end)) + "\":" + std::to_string(id++) + ",";
    more = end == std::string_view::npos ? std::string_view() : more.substr(end + 1);
  }
  json.back() = '}';
  return json;
}

/// A shared adapter of 2 layers, d_model 2, bottleneck 1, with masks of layers and of two tasks.
trainer::Artifact layered_artifact() {
  trainer::Artifact artifact;
  artifact.module = metrics::ModuleStorage{testing::formula_of("adapter"), 2,   2, 1, true,
                                           metrics::MaskKind::learned,     0.5, 2};
  artifact.values = {{"down.weight", {1, 2}, {1, 2}},
                     {"down.bias", {1}, {3}},
                     {"up.weight", {2, 1}, {4, 5}},
                     {"up.bias", {2}, {6, 7}}};
  for (const auto& [name, shape] :
       {std::pair{"down.weight", std::vector<std::int64_t>{2, 1, 2}}, {"up.weight", {2, 2, 1}}}) {
    artifact.masks.push_back({std::string(name) + ".mask", shape, {1, 0, 0, 1}});
    artifact.masks.push_back({std::string(name) + ".task_mask", shape, {0, 1, 0, 1}});
  }
  for (const std::string task : {"a", "b"}) {
    artifact.labels[task] = {"no", "yes"};
    artifact.head.push_back({task + ".dense.weight", {2, 2}, {1, 2, 3, 4}});
    artifact.head.push_back({task + ".dense.bias", {2}, {5, 6}});
    artifact.head.push_back({task + ".out_proj.weight", {2, 2}, {7, 8, 9, 10}});
    artifact.head.push_back({task + ".out_proj.bias", {2}, {11, 12}});
  }
  return artifact;
}

std::string foreign_seed(std::vector<std::string> tasks) {
  sweeps::TrialConfig config = sweeps::default_config("adapter");
  config.tasks = std::move(tasks);
  config.module.bottleneck = 1;
  config.module.share = true;
  config.module.mask = metrics::MaskKind::learned;
  return R"({"name":"a","r":2.5,"flag":true,"known":"x","off":[],"id2label":{"0":"n","1":"y"},)"
         R"("label2id":{"n":0,"y":1}})"
         "\x01" +
         sweeps::to_json(config).dump();
}

void read_artifact(std::string_view bytes) {
  const bool storage = accepted([&] { protocol::artifact_storage(bytes, "input"); });
  accepted([&] {
    const trainer::Artifact read = trainer::parse_artifact(bytes, "input");
    require(storage, "what reads as an artifact has a storage");
    const std::string again = trainer::artifact_bytes(read);
    require(trainer::artifact_bytes(trainer::parse_artifact(again, "input")) == again,
            "an artifact reads back as it was written");
  });
}

constexpr std::array<FilesTarget, 11> kTargets{{
    {"safetensors", safetensors, [] { return std::vector<std::string>{safetensors_seed()}; }},
    {"torch_file", torch_file,
     [] { return std::vector<std::string>{archive(pickle_seeds().front())}; }},
    {"torch_pickle", torch_pickle, pickle_seeds},
    {"wordpiece_files", wordpiece_files, [] { return std::vector<std::string>{kWordPieceSeed}; }},
    {"byte_bpe_files", byte_bpe_files, [] { return std::vector<std::string>{kByteBpeSeed}; }},
    {"tokenizer_json", tokenizer_json, [] { return std::vector<std::string>{kTokenizerJsonSeed}; }},
    {"spiece_model", spiece_model,
     [] {
       using namespace std::string_literals;
       const std::string pieces =
           "\x0a\x0e\x0a\x05<pad>\x15\x00\x00\x00\x00\x18\x03"
           "\x0a\x0d\x0a\x04</s>\x15\x00\x00\x00\x00\x18\x03"
           "\x0a\x0e\x0a\x05<unk>\x15\x00\x00\x00\x00\x18\x02"
           "\x0a\x0c\x0a\x03\xe2\x96\x81\x15\x00\x00\x00\xc0\x18\x01"
           "\x0a\x0d\x0a\x04\xe2\x96\x81"
           "a\x15\x00\x00\x40\xc0\x18\x01"
           "\x12\x02\x18\x01"s;
       // A character map of two units that replaces nothing, alone and in a model.
       const std::string map = "\x08\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00x\x00"s;
       return std::vector<std::string>{pieces, pieces + "\x1a\x10\x12\x0e"s + map, map};
     }},
    {"json_files", json_files,
     [] {
       return std::vector<std::string>{
           R"({"model_type":"roberta","vocab_size":9,"hidden_size":8,"num_hidden_layers":1,)"
           R"("num_attention_heads":2,"intermediate_size":16,"max_position_embeddings":16,)"
           R"("layer_norm_eps":1e-5,"hidden_act":"gelu"})",
           R"({"model_type":"t5","vocab_size":9,"d_model":8,"d_kv":3,"num_heads":2,"d_ff":16,)"
           R"("num_layers":1,"feed_forward_proj":"gated-gelu","tie_word_embeddings":true,)"
           R"("scale_decoder_outputs":false})",
           R"({"model_type":"modernbert","vocab_size":9,"hidden_size":8,"num_hidden_layers":2,)"
           R"("num_attention_heads":2,"intermediate_size":16,"max_position_embeddings":16,)"
           R"("pad_token_id":0,"layer_types":["full_attention","sliding_attention"],)"
           R"("rope_parameters":{"full_attention":{"rope_theta":9},)"
           R"("sliding_attention":{"rope_type":"default"}}})",
           R"({"metadata":{},"weight_map":{"a":"model-00001-of-00002.safetensors"}})"};
     }},
    {"artifact", artifact,
     [] {
       return std::vector<std::string>{
           artifact_seed(),
           R"({"trial":"t","config":{},"backbone_digest":"","numerics":"","step":1,"labels":{},)"
           R"("tensors":[{"name":"v","section":"values","shape":[8]},)"
           R"({"name":"s","section":"values","shape":[64],"kept":32},)"
           R"({"name":"m","section":"masks","shape":[8,8]}]})",
           R"({"trial":"t","config":{},"backbone_digest":"","numerics":"","step":1,"labels":{},)"
           R"("module":{"family":"lora","d_model":1,"layers":1,"size":4,"share":false,)"
           R"("mask":"none","sparsity_ratio":0.5,"tasks":1},)"
           R"("tensors":[{"name":"v","section":"values","shape":[16]}]})"};
     }},
    {"foreign_module", foreign_module,
     [] {
       // The artifact has masks of two tasks.
       return std::vector<std::string>{foreign_seed({"a", "b"}), foreign_seed({"a"}),
                                       foreign_seed({"b", "c", "a"})};
     }},
    {"data_file", data_file,
     [] {
       return std::vector<std::string>{std::string(1, '\0') + "a\tb\ty\r\nx\t\"z\t1\n",
                                       "\x01"
                                       "1\tt\t0.5\n",
                                       "\x02"
                                       "a,b,y\n\"x, \"\"q\"\"\nz\",w,1\n",
                                       "\x04{\"a\": \"x\", \"b\": \"z\", \"y\": 1.5}\n",
                                       "\x28{\"a\": \"x\", \"b\": \"z\", \"o\": {\"y\": \"w\"}}\n",
                                       std::string("\x10") + "a b\r\nc\n" + '\0' + "A\nB\n"};
     }},
}};

}  // namespace

void safetensors(std::string_view input) {
  const auto file = file_of(input);
  accepted([&] {
    const auto read = trainer::SafetensorsFile::parse(file);
    std::size_t bytes = 0;
    for (const std::string& name : read.names()) {
      touch(read.tensor(name));
      bytes += read.tensor(name).bytes.size();
    }
    require(bytes <= input.size(), "no byte belongs to two tensors");
  });
}

void torch_file(std::string_view input) {
  const auto file = file_of(input);
  accepted([&] {
    for (const auto& [name, view] : trainer::read_torch_file(file)) touch(view);
  });
}

void torch_pickle(std::string_view input) { torch_file(archive(input)); }

void wordpiece_files(std::string_view input) {
  const auto parts = parts_of(input, 3);
  accepted([&] {
    const auto tokenizer = trainer::make_tokenizer(
        {trainer::TokenizerFiles::File{"input/vocab.txt", parts[1]}, std::nullopt, std::nullopt,
         trainer::TokenizerFiles::File{"input/tokenizer_config.json", parts[0]}});
    use_tokenizer(*tokenizer, parts[2]);
  });
}

void tokenizer_json(std::string_view input) {
  const auto parts = parts_of(input, 5);
  const auto file = [](const char* name, std::string_view text) {
    return trainer::TokenizerFiles::File{std::string("input/") + name, text};
  };
  accepted([&] {
    const auto tokenizer =
        trainer::make_tokenizer({.config = file("tokenizer_config.json", parts[0]),
                                 .special_tokens_map = file("special_tokens_map.json", parts[1]),
                                 .added_tokens = file("added_tokens.json", parts[2]),
                                 .tokenizer_json = file("tokenizer.json", parts[3])});
    use_tokenizer(*tokenizer, parts[4]);
  });
}

void spiece_model(std::string_view input) {
  constexpr std::string_view kTexts[] = {"", "a b  \u2581", "\u00e9e\u0301\r\n<extra_id_3>\u4e2d"};
  accepted([&] {
    const auto tokenizer = trainer::make_tokenizer(
        {.spiece_model = trainer::TokenizerFiles::File{"input/spiece.model", input}});
    for (const std::string_view text : kTexts) use_tokenizer(*tokenizer, text);
  });
  accepted([&] {
    const trainer::Charsmap map(input, "input");
    for (const std::string_view text : kTexts) map.normalize(text);
  });
}

void byte_bpe_files(std::string_view input) {
  const auto parts = parts_of(input, 4);
  const std::string vocab = byte_vocab(parts[1]);
  accepted([&] {
    const auto tokenizer = trainer::make_tokenizer(
        {std::nullopt, trainer::TokenizerFiles::File{"input/vocab.json", vocab},
         trainer::TokenizerFiles::File{"input/merges.txt", parts[2]},
         trainer::TokenizerFiles::File{"input/tokenizer_config.json", parts[0]}});
    use_tokenizer(*tokenizer, parts[3]);
  });
  // The first part is also used as the vocabulary itself.
  accepted([&] {
    trainer::make_tokenizer({std::nullopt, trainer::TokenizerFiles::File{"input", parts[0]},
                             trainer::TokenizerFiles::File{"input", parts[2]}, std::nullopt});
  });
}

void json_files(std::string_view input) {
  accepted([&] {
    const auto config = trainer::parse_encoder_config(input, "input");
    require(config.d_model % config.num_heads == 0, "heads divide the width");
    require(config.max_tokens() > 0, "a token fits");
    if (config.num_layers < 100) require(config.parameters() > 0, "parameters do not overflow");
  });
  accepted([&] {
    const auto config = trainer::parse_modernbert_config(input, "input");
    require(config.d_model / config.num_heads % 2 == 0, "heads have pairs");
    if (config.num_layers() < 100) {
      for (const auto& tensor : trainer::modernbert_tensors(config)) {
        require(trainer::elements(tensor.shape) > 0, "sizes do not overflow");
      }
    }
  });
  accepted([&] {
    const auto config = trainer::parse_t5_config(input, "input");
    require(config.inner() > 0, "heads have a width");
    const auto last =
        trainer::relative_bucket(1 << 20, true, config.num_buckets, config.max_distance);
    require(last >= 0 && last < config.num_buckets, "a bucket is a row of the table");
    if (config.num_layers + config.num_decoder_layers < 200) {
      for (const auto& tensor : trainer::t5_tensors(config)) {
        require(trainer::elements(tensor.shape) > 0, "sizes do not overflow");
      }
    }
  });
  accepted([&] {
    for (const auto& [tensor, file] : trainer::parse_shard_index(input, "input")) {
      require(!file.empty() && file != ".." && file.find('/') == std::string::npos,
              "a shard is a plain name");
    }
  });
}

void artifact(std::string_view input) {
  read_artifact(input);
  // Checksums refuse most changes, so the input is also used as the header of valid sections.
  const std::string values(64, '\x3f');
  const std::string masks(8, '\x5a');
  read_artifact(protocol::make_artifact_container(
      std::string(input), {{protocol::ArtifactSectionKind::values, 512, values},
                           {protocol::ArtifactSectionKind::masks, 64, masks},
                           {protocol::ArtifactSectionKind::positions, 64, masks}}));
}

void foreign_module(std::string_view input) {
  const auto parts = parts_of(input, 2);
  accepted([&] {
    auto config = trainer::ForeignConfig::parse(parts[0], "input");
    for (const auto& labels :
         {trainer::labels_of_id2label(config.all()), trainer::labels_of_label2id(config.all())}) {
      require(labels.size() <= input.size(), "a label is in the file");
    }
    config.text("name", "");
    require(std::isfinite(config.number("r", 1)), "a number is finite");
    config.flag("flag", false);
    config.require("known", "x", "why");
    config.ignore({"id2label", "label2id"});
    config.refuse_others("why");
  });
  // The artifact is fixed; its configuration comes from the input.
  const trainer::Artifact artifact = layered_artifact();
  sweeps::TrialConfig config;
  try {
    config = sweeps::trial_config_from_json(base::parse_shallow_json(parts[1], "input"));
  } catch (const base::Error&) {
    return;
  } catch (const nlohmann::json::exception&) {
    return;
  } catch (const std::invalid_argument&) {
    return;
  }
  for (const std::string& task : config.tasks) {
    try {
      const auto module = trainer::layered_module(artifact, config, task);
      require(config.tasks.size() == 2, "a task that is read has a mask");
      for (const auto& [name, weight] : module.weights) {
        require(std::ssize(weight.values) == trainer::elements(weight.shape),
                "a weight has the values of its shape");
      }
    } catch (const trainer::Error&) {
    }
  }
}

namespace {

// Two files of lines, separated by the first zero byte.
void aligned_files(std::string_view input) {
  const std::size_t cut = input.find('\0');
  const std::vector<trainer::LineFile> files = {
      {"input.ro", input.substr(0, cut)},
      {"input.en", cut == std::string_view::npos ? "" : input.substr(cut + 1)}};
  accepted([&] {
    const auto rows = trainer::align_rows(files);
    require(!rows.empty(), "files without lines are refused");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      require(rows[i].line == static_cast<std::int64_t>(i) + 1, "a row is a line");
      require(rows[i].texts.size() == 1, "a row has its text");
      require(!base::first_invalid_utf8(rows[i].target), "a target is UTF-8");
    }
  });
}

}  // namespace

void data_file(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  if (choice / 16 % 2 == 1) {
    aligned_files(input.substr(1));
    return;
  }
  sweeps::TaskLayout layout;
  constexpr std::array<sweeps::FileFormat, 3> kFormats{
      sweeps::FileFormat::tsv, sweeps::FileFormat::csv, sweeps::FileFormat::jsonl};
  layout.format = kFormats[choice / 2 % 3];
  layout.header = choice % 2 == 0;
  layout.skip_short_rows = choice / 8 % 2 == 1;
  layout.ignore_extra_columns = choice / 64 % 2 == 1;
  if (layout.header) {
    layout.text_columns = {"a", "b"};
    // In JSON lines, the target may be inside an object.
    layout.target_column = choice / 32 % 2 == 1 ? "o.y" : "y";
  } else {
    layout.text_columns = {"1"};
    layout.target_column = "2";
  }
  accepted([&] {
    std::int64_t line = 0;
    const auto rows = trainer::parse_rows(layout, input.substr(1), "input");
    require(!rows.empty(), "a file without rows is refused");
    for (const trainer::DataRow& row : rows) {
      require(row.texts.size() == layout.text_columns.size(), "a row has its texts");
      require(row.line > line, "lines go up");
      line = row.line;
      for (const std::string& text : row.texts) {
        require(!base::first_invalid_utf8(text), "a text is UTF-8");
      }
    }
  });
}

std::span<const FilesTarget> files_targets() { return kTargets; }

}  // namespace petlab::fuzz
