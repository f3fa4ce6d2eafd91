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
  std::string digest;  // sweeps::backbone_digest of its files
  std::unique_ptr<const Backbone> model;
  std::unique_ptr<const Tokenizer> tokenizer;

  Pretrained pretrained() const { return {*model, tokenizer.get()}; }
};

/// Caches the last backbone, tokenised data and digests of files between trials. Not thread-safe.
class BackboneStore {
 public:
  /// Digests are cached in `cache` as in sweeps::FileDigests; if it is empty, in memory only.
  explicit BackboneStore(std::filesystem::path cache = {}) : digests_(std::move(cache)) {}

  /// Returns the cached backbone if folder and placement are the same and its files still have the
  /// same digest. Otherwise drops it before loading the folder, so that two are in memory only if
  /// the caller keeps the first. Throws sweeps::Error, and Error, also if the files change while
  /// they are read or a token has no row in the embedding (require_rows).
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
