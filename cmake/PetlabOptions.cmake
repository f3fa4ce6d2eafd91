# Compiler flags for all petlab targets, in the interface target petlab_options. Uses ccache if it
# is installed.
find_program(PETLAB_CCACHE ccache)
if(PETLAB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PETLAB_CCACHE})
endif()

add_library(petlab_options INTERFACE)
target_include_directories(petlab_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(petlab_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 mistakes "literal" + std::string for an overlapping copy (GCC bug 105651).
  target_compile_options(petlab_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # GCC 13 and 14 confuse a reference into one argument with one into another, temporary argument.
  target_compile_options(petlab_options INTERFACE -Wno-dangling-reference)
endif()
if(PETLAB_WERROR)
  target_compile_options(petlab_options INTERFACE -Werror)
endif()
if(PETLAB_SANITIZE)
  # Set before any target is created, so that third-party code compiled here is instrumented too.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Checks at every use of a pointer take a fifth of the compile time and find what AddressSanitizer
  # finds too. Alignment is still checked where bytes of files are read as numbers.
  add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
  add_compile_definitions(PETLAB_SANITIZED _GLIBCXX_ASSERTIONS)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns falsely about uninitialised standard library objects in instrumented code.
    add_compile_options(-Wno-maybe-uninitialized)
  else()
    # Its data for every function slow down each of the thousands of starts in the tests.
    add_compile_options(-fno-sanitize=function)
  endif()
  add_link_options(-fsanitize=address,undefined)
  # The sanitizers' data are then not moved to another address at each start. With both, a start
  # takes a third less processor time.
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
if(PETLAB_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(PETLAB_TIDY)
  find_program(PETLAB_CLANG_TIDY clang-tidy REQUIRED)
  set(CMAKE_CXX_CLANG_TIDY ${PETLAB_CLANG_TIDY})
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# petlab_library(NAME SOURCES... DEPENDS...): creates one static library per folder.
function(petlab_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC petlab_options ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # A build of one source at a time would read these headers hundreds of times.
  # scripts/check_includes.py checks that each source includes those that it uses.
  if(NOT CMAKE_UNITY_BUILD)
    set(precompiled fmt::fmt <fmt/format.h> nlohmann_json::nlohmann_json <nlohmann/json.hpp>
      CLI11::CLI11 <CLI/CLI.hpp>)
    while(precompiled)
      list(POP_FRONT precompiled library header)
      if(library IN_LIST ARG_PRIVATE_DEPENDS)
        target_precompile_headers(${name} PRIVATE ${header})
      endif()
    endwhile()
    # Otherwise ccache never finds what was compiled with an earlier copy of the header.
    target_compile_options(${name}
      PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endfunction()

# Programs load no libraries and contain no functions that they do not use.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(LINKER:--as-needed LINKER:--gc-sections)
