# Finds all third-party dependencies. docs/internals/building.md lists their uses and tested
# versions.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(LibArchive REQUIRED)
find_package(ZLIB REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
# Use Boost's own package; CMake no longer ships one.
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)
endif()
find_package(Boost 1.81 REQUIRED COMPONENTS system)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)

# Not found by pkg-config: Debian 13's file requires the headers of protobuf, which petlab does not
# need.
find_path(SENTENCEPIECE_HEADERS sentencepiece_trainer.h REQUIRED)
find_library(SENTENCEPIECE_LIBRARY sentencepiece REQUIRED)
find_library(SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train REQUIRED)
add_library(sentencepiece INTERFACE)
target_include_directories(sentencepiece SYSTEM INTERFACE ${SENTENCEPIECE_HEADERS})
target_link_libraries(sentencepiece INTERFACE ${SENTENCEPIECE_TRAIN_LIBRARY} ${SENTENCEPIECE_LIBRARY})

find_library(SQLITECPP_LIBRARY SQLiteCpp REQUIRED)
add_library(sqlitecpp INTERFACE)
target_link_libraries(sqlitecpp INTERFACE ${SQLITECPP_LIBRARY} SQLite::SQLite3)

if(PETLAB_WITH_TORCH)
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc>=5.2)
  include(PetlabLibTorch)
  petlab_find_libtorch()
endif()
