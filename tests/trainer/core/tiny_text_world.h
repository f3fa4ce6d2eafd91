#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/trainer/core/tiny_world.h"
#include "trainer/backbones/t5_config.h"

namespace petlab::testing {

/// A TinyWorld that also has a T5 of 2 + 2 layers. Its vocabulary has the task's words and a few
/// letters.
struct TinyTextWorld : TinyWorld {
  TinyTextWorld() {
    folder.write("tiny-t5/config.json", R"({"model_type": "t5", "vocab_size": 24, "d_model": 16,
      "d_kv": 6, "num_heads": 2, "d_ff": 24, "num_layers": 2, "relative_attention_num_buckets": 8,
      "relative_attention_max_distance": 16, "dropout_rate": 0.1, "layer_norm_epsilon": 1e-6,
      "feed_forward_proj": "relu", "tie_word_embeddings": true, "pad_token_id": 0,
      "eos_token_id": 1, "decoder_start_token_id": 0})");
    folder.write("tiny-t5/tokenizer.json", tokenizer().dump());
    write_weights("tiny-t5",
                  trainer::t5_tensors(trainer::read_t5_config(folder.path() / "tiny-t5")));
  }

  static nlohmann::json tokenizer() {
    using Json = nlohmann::json;
    const std::string space = "\u2581";
    Json vocabulary = Json::array({{"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}});
    for (const std::string word :
         {"", "good", "bad", "film", "plot", "is", "the", "very", "not", "0", "1", "3"}) {
      vocabulary.push_back({space + word, -2.0});
    }
    for (const std::string letter : {"0", "1", "2", "5", ".", "a", "b", "e", "n"}) {
      vocabulary.push_back({letter, -4.0});
    }
    Json added = Json::array();
    for (int id = 0; id < 3; ++id) {
      added.push_back(
          {{"id", id}, {"content", vocabulary[id][0]}, {"special", true}, {"normalized", false}});
    }
    const Json metaspace{{"type", "Metaspace"},
                         {"replacement", space},
                         {"prepend_scheme", "always"},
                         {"split", true}};
    const auto text = [](const char* name) {
      return Json{{"Sequence", {{"id", name}, {"type_id", 0}}}};
    };
    const Json end{{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}};
    return {
        {"added_tokens", added},
        {"normalizer",
         {{"type", "Sequence"},
          {"normalizers",
           {{{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}},
            {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", space}}}}}},
        {"pre_tokenizer", metaspace},
        {"post_processor",
         {{"type", "TemplateProcessing"},
          {"single", {text("A"), end}},
          {"pair", {text("A"), end, text("B"), end}}}},
        {"model",
         {{"type", "Unigram"}, {"unk_id", 2}, {"vocab", vocabulary}, {"byte_fallback", false}}}};
  }

  protocol::TrialFile trial(const std::string& kind) const {
    protocol::TrialFile trial = TinyWorld::trial(kind);
    trial.config.backbone = "./tiny-t5";
    trial.backbone_folder = folder.path() / "tiny-t5";
    trial.tasks.front().text_to_text.source = "the {text1}";
    return trial;
  }
};

}  // namespace petlab::testing
