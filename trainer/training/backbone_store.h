#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sweeps/identity.h"
#include "trainer/backbones/backbone.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/training/objective.h"

namespace petlab::trainer {

/// A backbone with its tokenizer, ready to use.
struct LoadedBackbone {
  std::string digest;  // sweeps::backbone_digest of the files that it was read from
  std::unique_ptr<const Backbone> model;
  std::unique_ptr<const Tokenizer> tokenizer;

  Pretrained pretrained() const { return {*model, tokenizer.get()}; }
};

/// Keeps backbones, and digests of files, from one trial to the next. For one thread.
class BackboneStore {
 public:
  /// Digests are remembered in `cache` as sweeps::FileDigests does; empty: in memory alone.
  explicit BackboneStore(std::filesystem::path cache = {}) : digests_(std::move(cache)) {}

  /// Loads the folder, or returns what was loaded before, where its files have the same digest
  /// still and the placement is the same. Throws Error, also where the files change while they are
  /// read, and sweeps::Error.
  std::shared_ptr<const LoadedBackbone> get(const std::filesystem::path& folder,
                                            const Placement& placement = {});
  sweeps::FileDigests& digests() { return digests_; }

 private:
  std::map<std::filesystem::path, std::shared_ptr<const LoadedBackbone>> loaded_;
  sweeps::FileDigests digests_;
};

}  // namespace petlab::trainer
