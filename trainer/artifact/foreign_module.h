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

/// The configuration of another library's module. Readers access every field that they support;
/// refuse_others() then rejects all other fields that are switched on, so that no setting that
/// affects the module's numbers is overlooked. Throws Error with file and field.
class ForeignConfig {
 public:
  /// Reads a JSON object of at most base::kMaxJsonDepth levels.
  static ForeignConfig read(const std::filesystem::path& file);
  /// The same from a text. `name` replaces the file in messages.
  static ForeignConfig parse(std::string_view text, const std::string& name);
  /// A part of a file. `name` is used in messages.
  ForeignConfig(std::string name, const nlohmann::json& all);
  ~ForeignConfig();
  ForeignConfig(ForeignConfig&&) noexcept;

  const std::string& name() const { return name_; }
  const nlohmann::json& all() const { return *all_; }
  /// Returns the field, or null if it is absent, and marks it as supported.
  const nlohmann::json& field(std::string_view key);
  /// The field's text, number or truth value; `otherwise` if it is absent or null.
  std::string text(std::string_view key, const std::string& otherwise);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);
  /// Marks fields as supported that do not affect what the trained module computes.
  void ignore(std::initializer_list<std::string_view> keys);
  /// Rejects the field unless it is absent or `wanted`. `why` ends the message.
  void require(std::string_view key, const nlohmann::json& wanted, const std::string& why);
  /// Rejects all fields that are not marked as supported and are not null, false, 0 or empty.
  void refuse_others(const std::string& why) const;
  /// Throws "NAME: KEY is VALUE, must be WANTED: why".
  [[noreturn]] void refuse(std::string_view key, const std::string& wanted,
                           const std::string& why = {}) const;

 private:
  std::string name_;
  std::unique_ptr<nlohmann::json> all_;
  std::set<std::string, std::less<>> known_;
};

/// The labels of a map from number to label, in the order of the numbers. Empty if the map is
/// absent or its numbers are not 0, 1, 2, …
std::vector<std::string> labels_of_id2label(const nlohmann::json& config);
/// The same for a map from label to number.
std::vector<std::string> labels_of_label2id(const nlohmann::json& config);

/// Takes the tensors of another library's module one by one, and tracks which are left.
class ForeignTensors {
 public:
  explicit ForeignTensors(StoredWeights weights);
  const std::string& source() const { return weights_.source; }
  /// All names, in alphabetical order.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// The tensor's shape. Throws as take.
  const std::vector<std::int64_t>& shape(const std::string& name) const;
  /// Returns the tensor as float32. Throws Error, with file and tensor, if it is missing or has
  /// another shape.
  std::vector<float> take(const std::string& name, const std::vector<std::int64_t>& shape);
  /// Throws Error naming a tensor that was not taken. `why` ends the message.
  void refuse_others(const std::string& why) const;

 private:
  const TensorView& find(const std::string& name) const;
  StoredWeights weights_;
  std::set<std::string, std::less<>> taken_;
};

/// Possible names of a head's layers, without ".weight" and ".bias". The first existing name is
/// used; the module's names come before the backbone's.
struct HeadNames {
  std::vector<std::string> dense, out;                    // in the module's own file
  std::vector<std::string> backbone_dense, backbone_out;  // among the backbone's weights
};

/// Reads a head. `module` may be nullptr: then only the backbone is searched. Labels are the
/// backbone's if their number fits, else the numbers of the outputs. Throws Error, with the names
/// tried, if a layer is missing.
LayeredHead read_head(ForeignTensors* module, const HeadNames& names,
                      const ModuleBackbone& backbone);

/// The names of a head in the backbone's weights, such as "classifier.dense". `pooled`: the head
/// uses the backbone's pooler, as BERT's does.
HeadNames backbone_head_names(const sweeps::BackboneShape& config, bool pooled);

/// The prefix of the encoder's names in a model with a head: "bert." or "roberta.".
std::string encoder_prefix(const sweeps::BackboneShape& config);

}  // namespace petlab::trainer
