#include "sweeps/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sweeps/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/programs.h"
#include "tests/support/temp_dir.h"

namespace petlab::sweeps {
namespace {

TEST_CASE("Each row of the table of fields agrees with itself", "[sweeps]") {
  std::set<int> places;
  for (const Field& field : fields()) {
    INFO(field.name);
    std::string column(field.name);
    std::replace(column.begin(), column.end(), '.', '_');
    CHECK(field.column == column);
    CHECK(places.insert(field.place).second);
    CHECK_FALSE(field.help.empty());
    const nlohmann::json value = field.get(TrialConfig());
    CHECK(value.is_string() == (field.type == FieldType::text));
    CHECK(value.is_boolean() == (field.type == FieldType::boolean));
    CHECK(value.is_number_float() == (field.type == FieldType::number));
    CHECK(value.is_number_integer() == (field.type == FieldType::integer));
  }
  CHECK(*places.begin() == 1);
  CHECK(*places.rbegin() == static_cast<int>(fields().size()));
}

TEST_CASE("What a row says in words is what it does", "[sweeps]") {
  CHECK(use_text(*find_field("training.epochs")) == "always");
  CHECK(use_text(*find_field("module.rank")) == "lora");
  CHECK(use_text(*find_field("module.sparsity_ratio")) == "adapter, lora, prefix with a mask");
  CHECK(use_text(*find_field("training.mask_learning_rate")) ==
        "adapter, lora, prefix with a learned mask");
  CHECK(default_text(*find_field("backbone")).empty());
  CHECK(default_text(*find_field("module.share")) == "false");
  CHECK(default_text(*find_field("module.kind")) == "adapter");
  CHECK(default_text(*find_field("training.learning_rate")) == "0.0001");
  CHECK(default_text(*find_field("training.mask_learning_rate")) ==
        "0.003; lora 0.03; prefix 0.0001");
}

TEST_CASE("The page on sweep files has every field as its row says", "[sweeps]") {
  const std::string page =
      petlab::testing::read_file(petlab::testing::source_dir() / "docs/sweep-files.md");
  for (const Field& field : fields()) {
    const std::string row = fmt::format("\n| `{}` | {} | {} | {}", field.name, default_text(field),
                                        use_text(field), field.help);
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

}  // namespace
}  // namespace petlab::sweeps
