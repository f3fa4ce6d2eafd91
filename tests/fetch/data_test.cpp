#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/files.h"
#include "base/sha256.h"
#include "fetch/error.h"
#include "fetch/fetch_data.h"
#include "fetch/unpack.h"
#include "sweeps/catalog.h"
#include "sweeps/identity.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace petlab::fetch {
namespace {

namespace fs = std::filesystem;
using Members = std::vector<std::pair<std::string, std::string>>;

std::string zip_of(const fs::path& file, const Members& members) {
  archive* const zip = archive_write_new();
  archive_write_set_format_zip(zip);
  REQUIRE(archive_write_open_filename(zip, file.c_str()) == ARCHIVE_OK);
  for (const auto& [name, content] : members) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, name.ends_with("/") ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    REQUIRE(archive_write_header(zip, entry) == ARCHIVE_OK);
    archive_write_data(zip, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_free(zip);
  return base::read_file(file, 1 << 20);
}

std::string text_of(const fs::path& file) { return base::read_file(file, 1 << 20); }

// A source with an archive that is created here, and a download that counts its calls.
struct World {
  petlab::testing::TempDir root;
  fs::path data = root.path() / "data";
  fs::path folder = data / "glue/RTE";
  std::string content =
      zip_of(root.path() / "RTE.zip", {{"RTE/", ""},
                                       {"__MACOSX/RTE/train.tsv", "not this one"},
                                       {"RTE/original/train.tsv", "nor this one"},
                                       {"RTE/train.tsv", std::string(200000, 't') + "\n"},
                                       {"RTE/dev.tsv", "dev\n"},
                                       {"RTE/test.tsv", "not expected"}});
  DataSource source{"rte",
                    "glue/RTE",
                    {{"/RTE.zip", content.size(), base::sha256(content).substr(7)}},
                    {"train.tsv", "dev.tsv"},
                    DataSource::Form::zip};
  int downloads = 0;
  DownloadTo download = [this](const DataFile&, const fs::path& to) {
    ++downloads;
    std::ofstream(to, std::ios::binary) << content;
  };
  FetchedData fetch() { return fetch_data(source, data, download, {}); }
};

TEST_CASE("Each source of GLUE provides the files of a task of the catalog", "[fetch]") {
  std::size_t glue = 0;
  for (const sweeps::TaskDeclaration& task : sweeps::tasks()) {
    glue += task.layouts.front().train.starts_with("glue/") ? 1 : 0;
  }
  CHECK(data_sources().size() == glue);
  for (const DataSource& source : data_sources()) {
    CAPTURE(source.task);
    const auto task = std::find_if(sweeps::tasks().begin(), sweeps::tasks().end(),
                                   [&](const auto& each) { return each.name == source.task; });
    REQUIRE(task != sweeps::tasks().end());
    const sweeps::TaskLayout& layout = task->layouts.front();
    CHECK(std::vector{layout.train, layout.validation} ==
          std::vector{source.folder + "/" + source.files.at(0),
                      source.folder + "/" + source.files.at(1)});
    for (const DataFile& file : source.downloads) {
      CHECK(file.sha256.size() == 64);
      CHECK(file.size > 0);
    }
  }
}

TEST_CASE("A task's data is unpacked from its archive, and is not downloaded twice", "[fetch]") {
  World world;
  const FetchedData first = world.fetch();
  CHECK(first.folder == world.folder);
  CHECK_FALSE(first.was_there);
  CHECK(text_of(world.folder / "train.tsv") == std::string(200000, 't') + "\n");
  CHECK(text_of(world.folder / "dev.tsv") == "dev\n");
  CHECK_FALSE(fs::exists(world.folder / "test.tsv"));
  CHECK_FALSE(fs::exists(world.data / ".petlab-downloads" / world.source.downloads[0].sha256));
  CHECK(world.fetch().was_there);
  CHECK(world.downloads == 1);

  SECTION("a missing file is fetched again") {
    fs::remove(world.folder / "train.tsv");
    CHECK_FALSE(world.fetch().was_there);
    CHECK(fs::exists(world.folder / "train.tsv"));
    CHECK(world.downloads == 2);
  }
  SECTION("a file that the user changed is not overwritten") {
    std::ofstream(world.folder / "dev.tsv") << "mine\n";
    CHECK_THROWS_WITH(world.fetch(),
                      (world.folder / "dev.tsv").string() +
                          ": has changed since petlab fetched it; move it to fetch it again");
    CHECK(text_of(world.folder / "dev.tsv") == "mine\n");
  }
}

TEST_CASE("The user's files are left alone", "[fetch]") {
  World world;
  fs::create_directories(world.folder);
  std::ofstream(world.folder / "train.tsv") << "mine\n";
  CHECK_THROWS_WITH(world.fetch(),
                    (world.folder / "train.tsv").string() +
                        ": exists without the other files of its task (train.tsv, dev.tsv), and "
                        "petlab did not fetch it: move it, or name another folder with --into");
  std::ofstream(world.folder / "dev.tsv") << "mine\n";
  CHECK(world.fetch().of_the_user);
  CHECK(text_of(world.folder / "train.tsv") == "mine\n");
  CHECK(world.downloads == 0);
}

TEST_CASE("A wrong archive leaves no data", "[fetch]") {
  World world;
  const std::string right = world.content;
  SECTION("with another digest") {
    world.content = zip_of(world.root.path() / "other.zip",
                           {{"RTE/train.tsv", "another"}, {"RTE/dev.tsv", "another"}});
    CHECK_THROWS_WITH(world.fetch(),
                      "RTE.zip: the downloaded file has the wrong digest and was deleted; try "
                      "again, or use another network: something on the way changes the data");
    world.content = right;
  }
  SECTION("without a file, or not an archive") {
    for (const std::string& content :
         {zip_of(world.root.path() / "other.zip", {{"RTE/train.tsv", "t"}}), std::string("no zip"),
          right.substr(0, right.size() / 2)}) {
      world.content = content;
      DataSource source = world.source;
      source.downloads[0] = {"/RTE.zip", content.size(), base::sha256(content).substr(7)};
      CHECK_THROWS_AS(fetch_data(source, world.data, world.download, {}), Error);
    }
    world.content = right;
  }
  CHECK_FALSE(fs::exists(world.folder / "train.tsv"));
  CHECK_FALSE(fs::exists(world.folder / "dev.tsv"));
  CHECK_FALSE(world.fetch().was_there);
  CHECK(text_of(world.folder / "dev.tsv") == "dev\n");
}

TEST_CASE("MRPC's rows are split by the ids of its development set", "[fetch]") {
  const petlab::testing::TempDir root;
  const fs::path ids = root.path() / "ids";
  const fs::path rows = root.path() / "rows";
  std::ofstream(ids) << "1\t2\n5\t6";
  const std::string header = "\xef\xbb\xbfQuality\t#1 ID\t#2 ID\t#1 String\t#2 String";
  std::ofstream(rows) << header << "\r\n1\t1\t2\tHe said \"no\" .\tNo . \r\n0\t3\t4\ta\tb\n"
                      << "1\t5\t6\tc\td";
  split_mrpc(ids, rows, root.path());
  CHECK(text_of(root.path() / "dev.tsv") ==
        header + "\n1\t1\t2\tHe said \"no\" .\tNo .\n1\t5\t6\tc\td\n");
  CHECK(text_of(root.path() / "train.tsv") == header + "\n0\t3\t4\ta\tb\n");
  std::ofstream(rows, std::ios::app) << "\n1\t7\t8\tonly one text\n";
  CHECK_THROWS_WITH(split_mrpc(ids, rows, root.path()),
                    rows.string() + ":5: found 4 columns, expected 5 of an MRPC row");
}

}  // namespace
}  // namespace petlab::fetch
