#pragma once

#include <functional>
#include <iosfwd>
#include <string_view>

#include "cli/subcommand.h"
#include "results/query.h"

namespace petlab::cli {

/// `petlab query`: one SELECT on the database, read-only.
std::function<int()> make_query(CLI::App& app, Streams streams);

/// For people: columns aligned by display width, numbers to the right, NULL spelled out; what a
/// terminal would take as a command is replaced.
void print_table(std::ostream& out, const results::QueryResult& result);
/// RFC 4180 with line feeds: NULL is nothing, empty text is "".
void print_csv(std::ostream& out, const results::QueryResult& result);
/// An array of objects, a line each. A column's name that comes again gets a number: name:1.
void print_json(std::ostream& out, const results::QueryResult& result);

}  // namespace petlab::cli
