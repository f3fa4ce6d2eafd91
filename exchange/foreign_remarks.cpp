#include "exchange/foreign_remarks.h"

#include <algorithm>
#include <vector>

#include "base/files.h"
#include "orchestrator/records/remark.h"
#include "protocol/trial_directory.h"

namespace petlab::exchange {
namespace {

using orchestrator::remark;
using orchestrator::remarks_file_of;
using protocol::Remark;

std::int64_t take_those_of(results::Store& store, const std::filesystem::path& runs,
                           const results::RemarkSubject& subject,
                           const std::filesystem::path& other_runs) {
  std::vector<Remark> fresh = protocol::read_remarks(remarks_file_of(other_runs, subject));
  const std::vector<Remark> here = protocol::read_remarks(remarks_file_of(runs, subject));
  std::erase_if(fresh, [&](const Remark& one) {
    return std::find(here.begin(), here.end(), one) != here.end();
  });
  if (!fresh.empty()) remark(store, runs, subject, fresh);
  return std::ssize(fresh);
}

}  // namespace

std::int64_t take_remarks(results::Store& store, const std::filesystem::path& runs,
                          const results::Reader& other, const std::filesystem::path& other_runs) {
  std::int64_t added = 0;
  for (const std::string& sweep : other.sweep_names()) {
    if (store.read().sweep(sweep)) added += take_those_of(store, runs, {"", sweep}, other_runs);
  }
  for (const std::filesystem::path& folder : base::entries_of(other_runs)) {
    const std::string id = folder.filename().string();
    if (store.read().trial(id)) added += take_those_of(store, runs, {id, ""}, other_runs);
  }
  return added;
}

}  // namespace petlab::exchange
