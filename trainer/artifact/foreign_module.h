#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/artifact/artifact.h"
#include "trainer/artifact/layered_module.h"
#include "trainer/artifact/module_formats.h"
#include "trainer/backbones/stored_weights.h"

namespace petlab::trainer {

/// The configuration of another library's module. Whoever reads it names every field that it knows;
/// refuse_others() then refuses each other one that is switched on, so that nothing which decides
/// the module's numbers is ever passed over. Throws Error naming file and field.
class ForeignConfig {
 public:
  /// Reads a JSON object of at most base::kMaxJsonDepth levels.
  static ForeignConfig read(const std::filesystem::path& file);
  /// The same from a text; `name` stands for the file in messages.
  static ForeignConfig parse(std::string_view text, const std::string& name);
  /// A part of a file, by the name that messages give it.
  ForeignConfig(std::string name, const nlohmann::json& all);
  ~ForeignConfig();
  ForeignConfig(ForeignConfig&&) noexcept;

  const std::string& name() const { return name_; }
  const nlohmann::json& all() const { return *all_; }
  /// The field, or null where it is absent; it counts as known from now on.
  const nlohmann::json& field(std::string_view key);
  /// The field's text, number or truth; `otherwise` where it is absent or null.
  std::string text(std::string_view key, const std::string& otherwise);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  /// Fields that change nothing of what the trained module computes.
  void ignore(std::initializer_list<std::string_view> keys);
  /// Refuses the field unless it is absent or `wanted`. `why` ends the message.
  void require(std::string_view key, const nlohmann::json& wanted, const std::string& why);
  /// Refuses every field that was not named before and is not null, false, 0 or empty.
  void refuse_others(const std::string& why) const;
  /// Throws "NAME: KEY is VALUE, must be WANTED: why".
  [[noreturn]] void refuse(std::string_view key, const std::string& wanted,
                           const std::string& why = {}) const;

 private:
  std::string name_;
  std::unique_ptr<nlohmann::json> all_;
  std::set<std::string, std::less<>> known_;
};

/// The labels of a map from number to label in the order of the numbers; empty where it is absent
/// or its numbers are not 0, 1, 2, …
std::vector<std::string> labels_of_id2label(const nlohmann::json& config);
/// The same of the map from label to number.
std::vector<std::string> labels_of_label2id(const nlohmann::json& config);

/// Takes the tensors of another library's module one by one, and knows which are left.
class ForeignTensors {
 public:
  explicit ForeignTensors(StoredWeights weights);
  const std::string& source() const { return weights_.source; }
  /// Names, in alphabetical order.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// The shape; throws as take.
  const std::vector<std::int64_t>& shape(const std::string& name) const;
  /// The tensor as float32. Throws Error naming file and tensor: not there, or another shape.
  std::vector<float> take(const std::string& name, const std::vector<std::int64_t>& shape);
  /// Throws Error naming a tensor that nobody took; `why` ends the message.
  void refuse_others(const std::string& why) const;

 private:
  const TensorView& find(const std::string& name) const;
  StoredWeights weights_;
  std::set<std::string, std::less<>> taken_;
};

/// Where the parts of a head may be, without ".weight" and ".bias": the first name that is there
/// counts, those of the module before those of the backbone.
struct HeadNames {
  std::vector<std::string> dense, out;                    // in the module's own file
  std::vector<std::string> backbone_dense, backbone_out;  // among the backbone's weights
};

/// Reads a head; `own` may be nullptr. Labels are the backbone's where it has as many, else the
/// outputs' numbers. Throws Error naming what was looked for where a part is nowhere.
LayeredHead read_head(ForeignTensors* own, const HeadNames& names, const ModuleBackbone& backbone);

/// "classifier.dense" and so on of the backbone's own weights. `pooled`: the head stands on the
/// backbone's pooler, as BERT's does.
HeadNames backbone_head_names(const EncoderConfig& config, bool pooled);

/// What precedes the encoder's own names in a model with a head: "bert." or "roberta.".
std::string encoder_prefix(const EncoderConfig& config);

}  // namespace petlab::trainer
