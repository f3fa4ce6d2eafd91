#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "sweeps/identity.h"
#include "trainer/backbones/encoder.h"
#include "trainer/tokenizers/tokenizer.h"

namespace petlab::trainer {

/// A backbone with its tokenizer, ready to use.
struct LoadedBackbone {
  Encoder encoder;
  std::unique_ptr<Tokenizer> tokenizer;
};

/// Keeps backbones, and digests of data files, from one trial to the next. For one thread.
class BackboneStore {
 public:
  /// Loads the folder, or returns what was loaded before (then the folder is not read again).
  /// Throws Error.
  std::shared_ptr<const LoadedBackbone> get(const std::filesystem::path& folder);
  /// Remembers nothing on disk.
  sweeps::FileDigests& digests() { return digests_; }

 private:
  std::map<std::filesystem::path, std::shared_ptr<const LoadedBackbone>> loaded_;
  sweeps::FileDigests digests_{{}};
};

}  // namespace petlab::trainer
