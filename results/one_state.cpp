#include "results/one_state.h"

#include "results/connection.h"
#include "results/question_sql.h"

namespace petlab::results {

using internal::Connection;
using internal::Query;

OneState::OneState(const std::filesystem::path& database)
    : OneState(std::make_shared<Connection>(database, Connection::Mode::read, OpenOptions())) {}

OneState::OneState(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)), reader_(connection_), scores_(connection_) {
  connection_->guard("read it", [&] { connection_->exec("BEGIN"); });
}

OneState::~OneState() { connection_->roll_back(); }

void OneState::rows(const std::string& sql, const std::vector<Value>& parameters,
                    const std::function<void(const std::vector<std::string>&)>& columns,
                    const std::function<void(const std::vector<Value>&)>& row) const {
  connection_->guard("read it", [&] {
    Query query(*connection_, sql, 0);
    internal::bind_all(query, parameters);
    const std::vector<std::string> names = query.columns();
    columns(names);
    std::vector<Value> values;
    while (query.step()) {
      values.clear();
      for (int i = 0; i < static_cast<int>(names.size()); ++i) values.push_back(query.value(i));
      row(values);
    }
    connection_->check_unchanged();
  });
}

}  // namespace petlab::results
