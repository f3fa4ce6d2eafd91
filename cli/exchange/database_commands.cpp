#include "cli/exchange/database_commands.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cli/exchange/backup.h"
#include "cli/exchange/check.h"
#include "cli/exchange/export.h"
#include "cli/exchange/gc.h"
#include "cli/exchange/import.h"
#include "cli/exchange/merge.h"
#include "cli/exchange/rebuild.h"
#include "cli/exchange/update.h"

namespace petlab::cli {
namespace {

constexpr Subcommand kDatabaseCommands[] = {
    {"check", "", "verify the database against the runs folder", make_check},
    {"backup", "", "copy the database, even while it is in use", make_backup},
    {"update", "", "update a database that an older petlab created", make_update},
    {"gc", "", "delete unneeded checkpoints and artifacts", make_gc},
    {"rebuild", "", "rebuild the database from the runs folder", make_rebuild},
    {"merge", "", "merge results from another database", make_merge},
    {"import", "", "import a runs folder or an archive", make_import},
    {"export", "", "export tables, runs for other tools, or one archive", make_export},
};

}  // namespace

std::function<int()> make_db(CLI::App& app, Streams streams) {
  app.require_subcommand(1);
  const auto chosen = std::make_shared<std::function<int()>>();
  for (const Subcommand& row : kDatabaseCommands) {
    CLI::App* const sub = app.add_subcommand(std::string(row.name), std::string(row.help));
    sub->callback([chosen, body = row.make(*sub, streams)] { *chosen = body; });
  }
  return [chosen] { return (*chosen)(); };
}

}  // namespace petlab::cli
