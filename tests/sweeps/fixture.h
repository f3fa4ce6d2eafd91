#pragma once

#include <string>
#include <vector>

#include "base/file_problems.h"
#include "sweeps/sweep_file.h"
#include "tests/support/temp_dir.h"

namespace petlab::sweeps::testing {

using Strings = std::vector<std::string>;

/// A temporary petlab home with backbones of known shape and a few bytes of weights.
class Home {
 public:
  Home() {
    backbone("minilm", 384, 6, 30522, "weights of minilm");
    backbone("roberta-base", 768, 12, 50265, "weights of roberta");
  }
  void backbone(const std::string& name, int d_model, int layers, int vocab,
                const std::string& weights) const {
    const std::string type = name.starts_with("roberta") ? "roberta" : "bert";
    const std::string positions = type == "roberta" ? "514" : "512";
    const std::string types = type == "roberta" ? "1" : "2";
    folder_.write("models/" + name + "/config.json",
                  R"({"model_type":")" + type + R"(","hidden_size":)" + std::to_string(d_model) +
                      R"(,"num_hidden_layers":)" + std::to_string(layers) +
                      R"(,"num_attention_heads":12,"intermediate_size":)" +
                      std::to_string(4 * d_model) + R"(,"vocab_size":)" + std::to_string(vocab) +
                      R"(,"max_position_embeddings":)" + positions + R"(,"type_vocab_size":)" +
                      types + "}");
    folder_.write("models/" + name + "/model.safetensors", weights);
  }
  /// Adds a T5 with `layers` layers each in its encoder and decoder.
  void t5_backbone(const std::string& name, int d_model, int layers, int heads = 8, int d_kv = 64,
                   int d_ff = 2048) const {
    const std::string d = std::to_string(d_model);
    folder_.write("models/" + name + "/config.json",
                  R"({"model_type":"t5","d_model":)" + d + R"(,"num_layers":)" +
                      std::to_string(layers) + R"(,"num_heads":)" + std::to_string(heads) +
                      R"(,"d_kv":)" + std::to_string(d_kv) + R"(,"d_ff":)" + std::to_string(d_ff) +
                      R"(,"vocab_size":32128})");
    folder_.write("models/" + name + "/model.safetensors", "weights of " + name);
  }
  Locations locations() const { return {folder_.path(), {folder_.path() / "data"}, {}}; }
  const petlab::testing::TempDir& folder() const { return folder_; }

  /// Writes the text to sweep.yaml and loads it.
  Sweep load(const std::string& text) const {
    return load_sweep(folder_.write("sweep.yaml", text), locations());
  }
  /// The problems of the text, without the folder's path.
  Strings problems(const std::string& text) const {
    try {
      load(text);
    } catch (const base::FileProblemsError& error) {
      Strings problems;
      const std::string prefix = folder_.path().string() + "/";
      for (std::string problem : error.problems()) {
        std::size_t at = 0;
        while ((at = problem.find(prefix, at)) != std::string::npos) {
          problem.erase(at, prefix.size());
        }
        problems.push_back(problem);
      }
      return problems;
    }
    return {};
  }

 private:
  petlab::testing::TempDir folder_;
};

}  // namespace petlab::sweeps::testing
