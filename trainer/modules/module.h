#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sweeps/trial_config.h"
#include "trainer/backbones/backbone.h"
#include "trainer/backbones/hooks.h"
#include "trainer/modules/masked_weight.h"

namespace petlab::trainer {

/// The inputs from which a module is built.
struct ModuleRequest {
  sweeps::ModuleConfig config;
  std::int64_t tasks = 1;  // more than 1: hybrid masks
  std::uint64_t seed = 0;  // for initialisation
  Placement placement = {};
};

/// The trained part of a trial, inside (or instead of) a frozen backbone. A step consists of merge,
/// forward passes with the module as hooks, backward, gather, and the optimizer on parameters().
class Module : public Hooks {
 public:
  /// The masked weights in a fixed order; empty if the module has none.
  virtual std::vector<MaskedWeight*> weights() { return {}; }
  /// The tensors that an artifact stores; weights() by default.
  virtual std::vector<StoredTensor> stored();
  /// Computes the weights for the next forward passes, with batches of `task`. With `frozen`, keeps
  /// the stored values and masks (for a module read from an artifact).
  virtual void merge(std::int64_t task, bool frozen);
  void merge(std::int64_t task = 0) { merge(task, false); }
  /// Completes the gradients of parameters() after backward.
  virtual void gather();
  /// Everything that is trained, except heads, in a fixed order.
  virtual std::vector<Parameter> parameters();
  /// The backbone that the trial computes with: the frozen one, or the module's own.
  virtual const Backbone& backbone(const Backbone& frozen) const { return frozen; }
};

/// A row of the table of modules. The catalog (sweeps/catalog.h) has the same kinds.
struct ModuleKind {
  std::string_view kind;
  std::unique_ptr<Module> (*make)(const ModuleRequest& request, const Backbone& backbone);
  bool trains_backbone = false;  // and hence shares none with other trials
  bool has_prefix = false;       // module.prefix_length keys and values before a sequence's own
};
std::span<const ModuleKind> module_kinds();
/// Throws std::invalid_argument for an unknown kind.
const ModuleKind& module_kind(std::string_view kind);

/// Creates the module that the configuration names, initialised from its seed. Throws as
/// module_kind.
std::unique_ptr<Module> make_module(const ModuleRequest& request, const Backbone& backbone);

/// The carriers of a site, all of the same width, so that they can share a prototype.
struct CarrierRow {
  std::int64_t layers = 0;
  std::int64_t width_in = 0;
  std::int64_t width_out = 0;
};
/// Throws std::invalid_argument if the backbone has none, or of different widths.
CarrierRow carrier_row(const ModuleRequest& request, const Backbone& backbone, Site site);

/// The plan of a module's masked weight: its name and the shape of one layer's weight.
WeightPlan weight_plan(const ModuleRequest& request, std::string name, std::int64_t layers,
                       std::vector<std::int64_t> shape);
/// The same for a bias (size): never masked, never decayed.
WeightPlan bias_plan(const ModuleRequest& request, std::string name, std::int64_t layers,
                     std::int64_t size);

/// The numbers of the streams that initialise weights. They affect a trial's results: never
/// renumber them, only append.
enum class Init : std::uint64_t {
  adapter_down = 1,
  adapter_up = 2,
  lora_query_a = 3,
  lora_value_a = 4,
  prefix_embedding = 5,
  prefix_hidden = 6,
  prefix_output = 7,
  head_dense = 8,
  head_out = 9,
  lora_query_b = 10,
  lora_value_b = 11,
  prefix_p = 12,
  prefix_hidden_bias = 13,
  prefix_output_bias = 14,
  hyper_task_embedding = 15,
  // A stack's generator numbers its random tensors consecutively; there are 10 of them.
  hyper_encoder = 16,
  hyper_decoder = 32,
};

/// Fill the values (all layers) with N(0, std) or U(-bound, bound).
void init_normal(Tensor& values, std::uint64_t seed, Init what, double std_dev);
void init_uniform(Tensor& values, std::uint64_t seed, Init what, double bound);
/// Draws the scores of learned masks from U(-bound, bound), or the random masks.
void init_masks(MaskedWeight& weight, std::uint64_t seed, Init what, double bound);

std::unique_ptr<Module> make_adapter(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_lora(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_prefix(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_full_finetuning(const ModuleRequest& request,
                                             const Backbone& backbone);
std::unique_ptr<Module> make_head_only(const ModuleRequest& request, const Backbone& backbone);
std::unique_ptr<Module> make_hyperformer(const ModuleRequest& request, const Backbone& backbone);

}  // namespace petlab::trainer
