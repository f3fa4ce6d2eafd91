#pragma once

#include <nlohmann/json_fwd.hpp>

namespace petlab::sweeps {

// JSON Schemas (draft 2020-12) of the files that users write, for editors. A schema accepts every
// file that petlab accepts; docs/reference/schema.md lists the mistakes it cannot detect.

/// The schema of sweep files for the worker's catalog of that id (empty: the built-in one). Fields,
/// types and ranges come from fields(), kinds from modules().
nlohmann::ordered_json sweep_schema(std::string_view catalog = {});
/// The schema of task declarations.
nlohmann::ordered_json task_schema();

}  // namespace petlab::sweeps
