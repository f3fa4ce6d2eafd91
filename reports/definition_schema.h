#pragma once

#include <nlohmann/json_fwd.hpp>

namespace petlab::reports {

/// JSON Schema (draft 2020-12) of report definitions, for editors. It accepts every definition that
/// petlab accepts; docs/reference/schema.md lists the mistakes it cannot detect.
nlohmann::ordered_json definition_schema();

}  // namespace petlab::reports
