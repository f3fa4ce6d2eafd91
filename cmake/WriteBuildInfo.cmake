# cmake -DSOURCE=… -DOUTPUT=… -DCOMPILER=… -DFLAGS=… -P WriteBuildInfo.cmake: runs at every build
# and rewrites the header only if its content changes.
set(commit unknown)
set(clean std::nullopt)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel
    OUTPUT_VARIABLE top RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # Sources unpacked inside another project's checkout do not belong to its commit.
  get_filename_component(whole ${SOURCE} REALPATH)
  if(NOT failed AND top STREQUAL whole)
    execute_process(COMMAND ${git} -C ${SOURCE} describe --always --tags --abbrev=12
      OUTPUT_VARIABLE found RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
      set(commit ${found})
      execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain --untracked-files=no
        OUTPUT_VARIABLE changes RESULT_VARIABLE failed ERROR_QUIET)
      if(NOT failed)
        if(changes STREQUAL "")
          set(clean true)
        else()
          set(clean false)
        endif()
      endif()
    endif()
  endif()
endif()
string(CONFIGURE [=[#pragma once

#include <optional>

namespace petlab::base {
inline constexpr char kBuildCommit[] = R"(@commit@)";
inline constexpr std::optional<bool> kBuildClean = @clean@;
inline constexpr char kBuildCompiler[] = R"(@COMPILER@)";
inline constexpr char kBuildFlags[] = R"(@FLAGS@)";
}  // namespace petlab::base
]=] header @ONLY)
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL header)
  file(WRITE ${OUTPUT} "${header}")
endif()
