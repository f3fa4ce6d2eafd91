#include "trainer/backbones/load_backbone.h"

#include <array>
#include <stdexcept>
#include <string_view>

#include "trainer/backbones/encoder.h"
#include "trainer/backbones/modernbert.h"
#include "trainer/backbones/t5.h"

namespace petlab::trainer {
namespace {

using Folder = std::filesystem::path;

template <typename Kind>
std::unique_ptr<const Backbone> load_as(const Folder& folder, const Placement& placement) {
  return std::make_unique<Kind>(Kind::load(folder, placement));
}

struct LoadedKind {
  std::string_view model_type;
  std::unique_ptr<const Backbone> (*load)(const Folder&, const Placement&);
};
constexpr std::array kLoadedKinds{
    LoadedKind{"bert", load_as<Encoder>}, LoadedKind{"roberta", load_as<Encoder>},
    LoadedKind{"t5", load_as<T5>}, LoadedKind{"modernbert", load_as<ModernBert>}};

}  // namespace

std::unique_ptr<const Backbone> load_backbone(const Folder& folder, const Placement& placement) {
  const std::string type = sweeps::read_backbone_shape(folder).model_type;
  for (const LoadedKind& kind : kLoadedKinds) {
    if (kind.model_type == type) return kind.load(folder, placement);
  }
  throw std::logic_error("model_type " + type + " has a shape, but no backbone");
}

}  // namespace petlab::trainer
