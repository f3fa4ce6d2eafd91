#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/size_formula.h"
#include "sweeps/catalog.h"
#include "sweeps/worker_catalog.h"

namespace petlab::sweeps::internal {

/// Throws std::invalid_argument: `catalog.KEY: found …, expected …`.
[[noreturn]] void refuse_catalog(const std::string& key, const nlohmann::json& found,
                                 std::string_view wanted);

/// Reads an object of a worker's catalog and refuses keys that nobody asked for. All functions
/// throw as refuse_catalog.
class CatalogKeys {
 public:
  /// `where` is the object's key, as in `kinds.lora`; the object must outlive this one.
  CatalogKeys(std::string where, const nlohmann::json& object);

  /// nullptr if it is absent.
  const nlohmann::json* find(const std::string& key);
  std::string text(const std::string& key, const std::string& otherwise);
  /// None if it is absent.
  std::vector<std::string> texts(const std::string& key);
  /// The entries of an object; none if it is absent.
  nlohmann::json entries(const std::string& key);
  /// False if it is absent.
  bool is_set(const std::string& key);
  /// The empty sum if it is absent.
  metrics::SizeFormula formula(const std::string& key);
  std::vector<metrics::SizeFormula> formulas(const std::string& key);

  void refuse_others() const;
  /// The whole key, as in `kinds.lora.uses`.
  std::string name(const std::string& key) const;

 private:
  std::string where_;
  const nlohmann::json& object_;
  std::vector<std::string> known_;
};

/// Refuses a name that sweep files and SQL could not contain.
void check_name(const std::string& where, const std::string& name);
/// Refuses what is no built-in field of the group `module`, or no other one.
void check_uses(const std::string& where, const std::vector<std::string>& names, bool in_module);
/// Reads defaults of built-in fields. `inside` is empty or ends with a dot.
std::vector<KindDefault> read_defaults(const std::string& inside, const nlohmann::json& entries);

/// Reads the object `kinds`, after the catalog's fields (declared_kinds.cpp). `own`: it is
/// petlab-trainer's catalog, which also says what petlab knows of its own trainer.
void read_kinds(const nlohmann::ordered_json& entries, WorkerCatalog& catalog, bool own);

}  // namespace petlab::sweeps::internal
