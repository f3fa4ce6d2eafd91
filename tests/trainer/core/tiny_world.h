#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "protocol/events.h"
#include "protocol/trial_directory.h"
#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "trainer/backbones/encoder.h"
#include "trainer/backbones/modernbert_config.h"
#include "trainer/compute/random_stream.h"
#include "trainer/compute/tensors.h"
#include "trainer/files/safetensors.h"
#include "trainer/worker/worker.h"

namespace petlab::testing {

/// A temporary folder with a random BERT of 2 layers, a ModernBERT of 4 with the same vocabulary, a
/// task of 60 sentences and room for runs.
struct TinyWorld {
  TempDir folder;

  TinyWorld() {
    folder.write("tiny/config.json", R"({"model_type": "bert", "vocab_size": 14,
      "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
      "intermediate_size": 24, "max_position_embeddings": 16, "type_vocab_size": 2,
      "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": 0,
      "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1})");
    folder.write("tiny-modernbert/config.json", R"({"model_type": "modernbert", "vocab_size": 14,
      "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2,
      "intermediate_size": 12, "max_position_embeddings": 16, "norm_eps": 1e-5,
      "local_attention": 4, "pad_token_id": 0, "attention_dropout": 0.1,
      "embedding_dropout": 0.1, "mlp_dropout": 0.1, "classifier_dropout": 0.1})");
    for (const char* name : {"tiny/vocab.txt", "tiny-modernbert/vocab.txt"}) {
      folder.write(
          name,
          "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\nplot\nis\nthe\nvery\nnot\na\n");
    }
    write_weights("tiny",
                  trainer::encoder_tensors(trainer::read_encoder_config(folder.path() / "tiny")));
    write_weights("tiny-modernbert", trainer::modernbert_tensors(trainer::read_modernbert_config(
                                         folder.path() / "tiny-modernbert")));
    const std::vector<std::string> words{"good", "bad", "film", "plot", "is", "the", "very", "not"};
    for (const auto& [name, rows] : {std::pair{"train", 40}, {"dev", 12}, {"test", 8}}) {
      std::string text = "label\tsentence\n";
      for (int i = 0; i < rows; ++i) {
        const int label = (i * 7 + rows) % 3 == 0 ? 1 : 0;
        text += std::to_string(label) + "\tthe film is " + (label ? "very good" : "bad");
        for (int w = 0; w < i % 5; ++w)
          text += " " + words[static_cast<std::size_t>(i + w * 3) % 8];
        text += "\n";
      }
      folder.write(std::string("data/") + name + ".tsv", text);
    }
  }

  /// Writes random weights to a backbone's folder. Norm weights are about 1.
  void write_weights(const std::string& name, const std::vector<trainer::WantedTensor>& wanted) {
    std::vector<std::pair<std::string, trainer::TensorView>> tensors;
    std::uint64_t number = 0;
    for (const trainer::WantedTensor& tensor : wanted) {
      at::Tensor values = at::empty(tensor.shape, at::kFloat);
      trainer::fill_normal(
          3, ++number, 0.2,
          {values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
      const bool norm =
          tensor.name.ends_with("Norm.weight") || tensor.name.ends_with("norm.weight");
      if (norm) values += 1;
      tensors.emplace_back(tensor.name, trainer::to_view(values));
    }
    trainer::write_safetensors(folder.path() / name / "model.safetensors", tensors);
  }

  sweeps::TaskDeclaration task() const {
    sweeps::TaskDeclaration task;
    task.name = "tiny-task";
    task.classes = {"0", "1"};
    sweeps::TaskLayout layout;
    layout.train = "train.tsv";
    layout.validation = "dev.tsv";
    layout.test = "test.tsv";
    layout.text_columns = {"sentence"};
    layout.target_column = "label";
    task.layouts = {layout};
    task.metrics = {"accuracy", "f1"};
    task.select_by = {"accuracy"};
    task.folder = folder.path() / "data";
    return task;
  }

  protocol::TrialFile trial(const std::string& kind) const {
    protocol::TrialFile trial;
    trial.trial_id = "0123456789abcdef";
    trial.config = sweeps::default_config(kind);
    trial.config.backbone = "./tiny";
    trial.config.tasks = {"tiny-task"};
    trial.config.module.bottleneck = 4;
    trial.config.module.rank = 2;
    trial.config.module.prefix_length = 3;
    trial.config.module.prefix_hidden = 8;
    trial.config.module.hyper_embedding = 5;
    trial.config.module.hyper_hidden = 6;
    trial.config.module.hyper_projected = 4;
    trial.config.training.epochs = 3;
    trial.config.training.batch_size = 12;
    trial.config.training.learning_rate = 5e-3;
    trial.config.training.mask_learning_rate = 5e-2;
    trial.tasks = {task()};
    trial.backbone_folder = folder.path() / "tiny";
    trial.data_folders = {folder.path() / "data"};
    return trial;
  }

  /// Creates an attempt's directory with its trial.json.
  std::filesystem::path attempt(const std::string& runs, protocol::TrialFile trial,
                                std::int64_t number = 1) const {
    const protocol::TrialDirectory directory(folder.path() / runs, trial.trial_id, number);
    std::filesystem::create_directories(directory.folder());
    trial.attempt = number;
    protocol::write_trial_file(directory.trial_json(), trial);
    return directory.folder();
  }
};

inline std::vector<protocol::Event> read_events(const std::filesystem::path& attempt) {
  std::ifstream stream(attempt / "events.jsonl");
  std::vector<protocol::Event> events;
  for (std::string line; std::getline(stream, line);) {
    events.push_back(protocol::parse_event(line));
    REQUIRE(events.back().seq == static_cast<std::int64_t>(events.size()) - 1);
  }
  return events;
}

template <typename Type>
std::vector<Type> events_of(const std::vector<protocol::Event>& events) {
  std::vector<Type> all;
  for (const protocol::Event& event : events) {
    if (const auto* const body = std::get_if<Type>(&event.body)) all.push_back(*body);
  }
  return all;
}

}  // namespace petlab::testing
