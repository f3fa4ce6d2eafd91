#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "sweeps/identity.h"
#include "trainer/backbones/backbone.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/training/data_store.h"
#include "trainer/training/objective.h"

namespace petlab::trainer {

/// A backbone with its tokenizer, ready to use.
struct LoadedBackbone {
  std::string digest;  // sweeps::backbone_digest of the files that it was read from
  std::unique_ptr<const Backbone> model;
  std::unique_ptr<const Tokenizer> tokenizer;

  Pretrained pretrained() const { return {*model, tokenizer.get()}; }
};

/// Keeps the last backbone, tokenised data and digests of files from one trial to the next. For one
/// thread.
class BackboneStore {
 public:
  /// Digests are remembered in `cache` as sweeps::FileDigests does; empty: in memory alone.
  explicit BackboneStore(std::filesystem::path cache = {}) : digests_(std::move(cache)) {}

  /// Returns the backbone of the last call if folder and placement are the same and its files still
  /// have the same digest. Else drops that one, so that two are never in memory unless the caller
  /// keeps the first, and loads the folder. Throws Error, also where the files change while they
  /// are read, and sweeps::Error.
  std::shared_ptr<const LoadedBackbone> get(const std::filesystem::path& folder,
                                            const Placement& placement = {});
  DataStore& data() { return data_; }
  sweeps::FileDigests& digests() { return digests_; }

 private:
  std::filesystem::path folder_;  // of last_
  std::shared_ptr<const LoadedBackbone> last_;
  DataStore data_;
  sweeps::FileDigests digests_;
};

}  // namespace petlab::trainer
