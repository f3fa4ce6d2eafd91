// The user's own backbones: initialised by `init`, or exported after full fine-tuning.
#include <nlohmann/json.hpp>

#include "tests/trainer/core/tiny_text_world.h"
#include "tests/trainer/core/train_attempt.h"
#include "trainer/artifact/artifact.h"
#include "trainer/backbones/backbone_kinds.h"
#include "trainer/backbones/t5.h"
#include "trainer/commands.h"
#include "trainer/files/error.h"

using namespace petlab;
using namespace petlab::trainer;
using petlab::testing::read_file;
using petlab::testing::TinyTextWorld;
using petlab::testing::train;

namespace {

/// A folder with a T5's config.json and some texts.
struct OwnWorld {
  testing::TempDir folder;

  OwnWorld() {
    folder.write("sizes.json", R"({"model_type": "t5", "vocab_size": 7, "d_model": 32, "d_kv": 8,
      "num_heads": 4, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 1})");
    std::string lines;
    for (int i = 0; i < 300; ++i) {
      lines += "line " + std::to_string(i * 37 % 101) + " of the texts, w\u00f6rter too\n";
    }
    folder.write("one.txt", lines);
    folder.write("two.txt", "the other file\r\nhas CRLF and ends without a line break");
  }

  InitOptions encoder_options(const std::string& type, const std::string& out) const {
    const std::string name = type + ".json";
    folder.write(name, R"({"model_type": ")" + type + R"(", "vocab_size": 7, "hidden_size": 32,
      "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
      "max_position_embeddings": 66, "type_vocab_size": 1, "initializer_range": 0.05})");
    InitOptions changed = options(out);
    changed.config = folder.path() / name;
    changed.vocabulary = 320;
    return changed;
  }

  InitOptions options(const std::string& out) const {
    InitOptions options;
    options.config = folder.path() / "sizes.json";
    options.texts = {folder.path() / "one.txt", folder.path() / "two.txt"};
    options.vocabulary = 60;
    options.out = folder.path() / out;
    return options;
  }
};

std::string refusal_of(const InitOptions& options) {
  try {
    run_init(options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("init creates a loadable backbone that the seed determines", "[trainer]") {
  const OwnWorld world;
  REQUIRE(run_init(world.options("own")) == 0);
  const auto folder = world.folder.path() / "own";
  const auto model = load_backbone(folder);
  const auto tokenizer = load_tokenizer(folder);
  const sweeps::BackboneShape shape = model->shape();
  CHECK(shape.vocab_size == tokenizer->vocab_size());
  CHECK(shape.vocab_size > 20);
  CHECK(shape.vocab_size <= 60);
  CHECK(shape.d_model == 32);
  CHECK(shape.decoder_layers == 1);
  const std::vector<std::int32_t> ids = tokenizer->encode("the texts").ids;
  CHECK(ids.back() == 1);
  CHECK(tokenizer->decode(ids, true) == "the texts");
  const auto spread = [&](const char* name) {
    return model->weights().find(name)->second.std().item<double>();
  };
  CHECK(spread("shared.weight") == Approx(1).epsilon(0.1));
  CHECK(spread("encoder.block.1.layer.0.SelfAttention.q.weight") == Approx(1.0 / 16).epsilon(0.1));
  CHECK(spread("decoder.block.0.layer.2.DenseReluDense.wo.weight") == Approx(1.0 / 8).epsilon(0.1));
  CHECK(model->weights().find("encoder.final_layer_norm.weight")->second.min().item<float>() == 1);

  REQUIRE(run_init(world.options("again")) == 0);
  InitOptions other = world.options("other");
  other.seed = 43;
  REQUIRE(run_init(other) == 0);
  for (const char* file : {"config.json", "spiece.model", "tokenizer_config.json"}) {
    CHECK(read_file(folder / file) == read_file(world.folder.path() / "again" / file));
    CHECK(read_file(folder / file) == read_file(world.folder.path() / "other" / file));
  }
  const std::string weights = read_file(folder / "model.safetensors");
  CHECK(weights == read_file(world.folder.path() / "again/model.safetensors"));
  CHECK(weights != read_file(world.folder.path() / "other/model.safetensors"));
}

TEST_CASE("init creates encoders with a new vocabulary", "[trainer]") {
  const OwnWorld world;
  const std::string type = GENERATE("bert", "roberta", "modernbert");
  INFO(type);
  REQUIRE(run_init(world.encoder_options(type, "own")) == 0);
  const auto folder = world.folder.path() / "own";
  const auto model = load_backbone(folder);
  const auto tokenizer = load_tokenizer(folder);
  CHECK(model->shape().vocab_size == tokenizer->vocab_size());
  CHECK(model->shape().vocab_size <= 320);
  const bool modern = type == "modernbert";
  const bool roberta = type != "bert";  // the vocabulary
  // Frequent words are one piece, and no character of the texts is unknown.
  const std::vector<std::int32_t> ids = tokenizer->encode("the texts, wörter").ids;
  CHECK(ids.size() <= 8);
  CHECK(tokenizer->decode(ids, true) == (roberta ? "the texts, wörter" : "the texts, worter"));
  CHECK(tokenizer->decode(tokenizer->encode("line 37").ids, true) == "line 37");
  const auto weight = [&](const char* name) { return model->weights().find(name)->second; };
  const Tensor words =
      weight(modern ? "embeddings.tok_embeddings.weight" : "embeddings.word_embeddings.weight");
  CHECK(words.std().item<double>() == Approx(0.05).epsilon(0.05));
  CHECK(words[2].abs().max().item<double>() > 0);
  if (modern) {
    CHECK(
        weight("layers.1.mlp.Wo.weight").std().item<double>() ==
        Approx(0.05 / std::sqrt(2.0 * static_cast<double>(model->shape().layers()))).epsilon(0.1));
    CHECK(weight("final_norm.weight").min().item<double>() == 1);
  } else {
    CHECK(words[roberta ? 1 : 0].abs().max().item<double>() == 0);
    CHECK(weight("encoder.layer.1.output.dense.bias").abs().max().item<float>() == 0);
  }
  // The same seed gives the same files.
  REQUIRE(run_init(world.encoder_options(type, "again")) == 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    INFO(entry.path().filename().string());
    CHECK(read_file(entry.path()) ==
          read_file(world.folder.path() / "again" / entry.path().filename()));
  }
}

TEST_CASE("a cased vocabulary distinguishes capitals and accents", "[trainer]") {
  const OwnWorld world;
  InitOptions options = world.encoder_options("bert", "cased");
  options.cased = true;
  REQUIRE(run_init(options) == 0);
  const auto tokenizer = load_tokenizer(world.folder.path() / "cased");
  CHECK(tokenizer->decode(tokenizer->encode("wörter").ids, true) == "wörter");
  CHECK(tokenizer->encode("CRLF").ids != tokenizer->encode("crlf").ids);
}

TEST_CASE("init refuses texts and settings that cannot make a backbone", "[trainer]") {
  const OwnWorld world;
  InitOptions options = world.options("own");
  options.texts = {world.folder.path() / "none.txt"};
  CHECK(refusal_of(options).find("none.txt: cannot be opened") != std::string::npos);
  world.folder.write("bytes.txt", "good\nb\xff\n");
  options.texts = {world.folder.path() / "bytes.txt"};
  CHECK(refusal_of(options).find("bytes.txt:2: byte 2 of the line is not UTF-8") !=
        std::string::npos);
  options = world.options("own");
  options.vocabulary = 5;
  CHECK(refusal_of(options).find("no vocabulary of 5 pieces") != std::string::npos);
  const auto refusal_of_config = [&](const std::string& config) {
    world.folder.write("other.json", config);
    InitOptions other = world.options("own");
    other.config = world.folder.path() / "other.json";
    return refusal_of(other);
  };
  CHECK(refusal_of_config(R"({"model_type": "gpt2"})")
            .ends_with("other.json: model_type: is \"gpt2\", must be " +
                       sweeps::known_model_types()));
  CHECK(refusal_of_config("{}").ends_with("model_type: is missing, must be " +
                                          sweeps::known_model_types()));
  CHECK(refusal_of_config(R"({"model_type": "bert", "initializer_range": 0})")
            .ends_with("initializer_range: is 0, must be a number > 0"));
  CHECK(refusal_of_config(R"({"model_type": "bert"})").find("hidden_size") != std::string::npos);
  options = world.options("own");
  options.cased = true;
  CHECK(refusal_of(options).find("--cased is for BERT's vocabularies, and ") == 0);
  // The message about a small vocabulary has the number of pieces needed.
  for (const auto& [type, wanted] :
       {std::pair{"bert", "characters alone are"}, std::pair{"roberta", "bytes alone are 261"}}) {
    INFO(type);
    options = world.encoder_options(type, "own");
    options.vocabulary = 20;
    CHECK(refusal_of(options).find(wanted) != std::string::npos);
  }
  world.folder.write("taken/file", "x");
  CHECK(refusal_of(world.options("taken")).find("taken: contains files") != std::string::npos);
}

TEST_CASE("a fully fine-tuned T5 is exported as a backbone", "[trainer]") {
  const TinyTextWorld world;
  const protocol::TrialFile trial = world.trial("full_finetuning");
  const auto attempt = world.attempt("runs", trial);
  REQUIRE(train(attempt).outcome == TrialOutcome::finished);
  ExportOptions options;
  options.artifact = attempt / "artifact.petl";
  options.format = kBackboneFormat;
  options.backbone = trial.backbone_folder.string();
  options.out = world.folder.path() / "tuned";
  REQUIRE(run_export(options) == 0);
  const auto tuned = load_backbone(options.out);
  const auto before = load_backbone(trial.backbone_folder);
  const Artifact artifact = read_artifact(options.artifact);
  REQUIRE(artifact.values.size() == tuned->weights().size());
  for (const ArtifactTensor& tensor : artifact.values) {
    INFO(tensor.name);
    const Tensor& found = tuned->weights().find(tensor.name)->second;
    CHECK(std::equal(tensor.values.begin(), tensor.values.end(), found.const_data_ptr<float>()));
  }
  CHECK(!at::equal(tuned->weights().find("shared.weight")->second,
                   before->weights().find("shared.weight")->second));
  CHECK(read_file(options.out / "tokenizer.json") ==
        read_file(trial.backbone_folder / "tokenizer.json"));
  CHECK_THROWS_AS(run_export(options), Error);  // the folder exists
  const protocol::TrialFile small = world.trial("adapter");
  const auto other = world.attempt("adapters", small);
  REQUIRE(train(other).outcome == TrialOutcome::finished);
  options.artifact = other / "artifact.petl";
  options.out = world.folder.path() / "none";
  CHECK_THROWS_AS(run_export(options), std::invalid_argument);
}

TEST_CASE("the error about an unknown export format lists the known ones", "[trainer]") {
  ExportOptions options;
  options.artifact = "none.petl";  // not read: the format is checked first
  options.format = "onnx";
  CHECK_THROWS_WITH(run_export(options),
                    "--format is onnx, must be one of peft, adapterhub, huggingface");
}
