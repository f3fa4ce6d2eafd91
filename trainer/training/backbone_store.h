#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "sweeps/identity.h"
#include "trainer/backbones/backbone.h"
#include "trainer/tokenizers/tokenizer.h"
#include "trainer/training/data_store.h"
#include "trainer/training/objective.h"
#include "trainer/training/recently_used.h"

namespace petlab::trainer {

/// A backbone with its tokenizer, ready to use.
struct LoadedBackbone {
  std::string digest;  // sweeps::backbone_digest of its files
  std::unique_ptr<const Backbone> model;
  std::unique_ptr<const Tokenizer> tokenizer;

  Pretrained pretrained() const { return {*model, tokenizer.get()}; }
};

/// Keeps backbones, as RecentlyUsed, tokenised data and digests of files between trials. A backbone
/// on a device other than the CPU is kept only until another is loaded. Not thread-safe.
class BackboneStore {
 public:
  /// Digests are cached in `cache` as in sweeps::FileDigests; if it is empty, in memory only.
  /// `most_bytes` limits the weights of the backbones that are kept in addition to the last.
  explicit BackboneStore(std::filesystem::path cache = {}, std::int64_t most_bytes = kMostKeptBytes)
      : kept_(most_bytes), digests_(std::move(cache)) {}

  /// Returns the kept backbone if folder and placement are the same and its files still have the
  /// same digest. Otherwise loads the folder. Drops others first, and then starts new peaks of
  /// memory. Throws sweeps::Error, and Error, also if the files change while they are read or a
  /// token has no row in the embedding (require_rows).
  std::shared_ptr<const LoadedBackbone> get(const std::filesystem::path& folder,
                                            const Placement& placement = {});
  DataStore& data() { return data_; }
  sweeps::FileDigests& digests() { return digests_; }
  /// The size of everything kept that the last calls of get and data().get did not return.
  std::int64_t bytes_of_others() const { return kept_.bytes_of_others() + data_.bytes_of_others(); }

 private:
  struct Key {
    std::filesystem::path folder;
    std::string digest;
    Placement placement;
    bool operator==(const Key&) const = default;
  };
  RecentlyUsed<Key, LoadedBackbone> kept_;
  DataStore data_;
  sweeps::FileDigests digests_;
};

}  // namespace petlab::trainer
