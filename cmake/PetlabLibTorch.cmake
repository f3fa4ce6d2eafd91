# Uses LibTorch without its CMake package: the package of a CUDA build requires a whole CUDA
# toolkit, which petlab does not need. petlab is compiled against the headers and linked only with
# libtorch_cpu and libc10. At run time these find the CUDA libraries next to themselves, and the
# CUDA back end is loaded when a trial requests it (trainer/compute/devices.h).
#
# petlab_find_libtorch(): creates the target `libtorch` from the first match in CMAKE_PREFIX_PATH (a
# LibTorch, or a folder with a Python `torch`), or from the wheel in petlab's virtual environment.
set(PETLAB_LIBTORCH_LEAST 2.4)

function(petlab_find_libtorch)
  if(DEFINED ENV{PETLAB_HOME})
    set(home $ENV{PETLAB_HOME})
  elseif(DEFINED ENV{XDG_DATA_HOME})
    set(home $ENV{XDG_DATA_HOME}/petlab)
  else()
    set(home $ENV{HOME}/.local/share/petlab)
  endif()
  string(REPLACE ":" ";" from_environment "$ENV{CMAKE_PREFIX_PATH}")
  file(GLOB wheel ${home}/venv/lib/python3*/site-packages/torch)
  set(folder "")
  foreach(candidate IN LISTS CMAKE_PREFIX_PATH from_environment wheel)
    # The last pattern is for the folder of TorchConfig.cmake, which `torch.utils.cmake_prefix_path`
    # prints.
    foreach(prefix ${candidate} ${candidate}/torch ${candidate}/libtorch ${candidate}/../..)
      if(EXISTS ${prefix}/include/ATen/ATen.h AND EXISTS ${prefix}/lib/libtorch_cpu.so)
        get_filename_component(folder ${prefix} REALPATH)
        break()
      endif()
    endforeach()
    if(folder)
      break()
    endif()
  endforeach()
  if(NOT folder)
    message(FATAL_ERROR "LibTorch was not found: run scripts/setup.sh, or name one with "
                        "CMAKE_PREFIX_PATH, or build without the trainer (--preset no-torch).")
  endif()

  set(version "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS ${folder}/include/${header})
      file(READ ${folder}/include/${header} text)
      if(text MATCHES "TORCH_VERSION_MAJOR ([0-9]+).*TORCH_VERSION_MINOR ([0-9]+)")
        set(version ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
        break()
      endif()
    endif()
  endforeach()
  if(NOT version)
    message(FATAL_ERROR "The LibTorch in ${folder} does not say its version; wanted one from "
                        "${PETLAB_LIBTORCH_LEAST} on.")
  endif()
  if(version VERSION_LESS PETLAB_LIBTORCH_LEAST)
    message(FATAL_ERROR "The LibTorch in ${folder} is ${version}; wanted ${PETLAB_LIBTORCH_LEAST} or "
                        "later. CMAKE_PREFIX_PATH names another.")
  endif()
  file(STRINGS ${folder}/lib/libc10.so abi REGEX "__cxx11" LIMIT_COUNT 1)
  if(NOT abi)
    message(FATAL_ERROR "The LibTorch in ${folder} is built with the C++ ABI of before GCC 5, which "
                        "fits no other library here; wanted a cxx11 ABI build. CMAKE_PREFIX_PATH "
                        "names another.")
  endif()
  message(STATUS "LibTorch ${version} in ${folder}")

  add_library(libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(libtorch SYSTEM INTERFACE ${folder}/include
    ${folder}/include/torch/csrc/api/include)
  # LibTorch's macros put the paths of its headers into messages.
  target_compile_options(libtorch INTERFACE -fmacro-prefix-map=${folder}/include/=)
  # In a CUDA build, libtorch_cpu depends on libraries that the linker does not find.
  target_link_libraries(libtorch INTERFACE ${folder}/lib/libtorch_cpu.so ${folder}/lib/libc10.so
    -Wl,--allow-shlib-undefined)

  # at::parallel_for is compiled into its caller: if LibTorch uses OpenMP and the caller is compiled
  # without it, the loop silently runs on one thread.
  file(STRINGS ${folder}/include/ATen/Config.h by_openmp REGEX "define AT_PARALLEL_OPENMP 1")
  if(by_openmp)
    find_package(OpenMP REQUIRED COMPONENTS CXX)
    set(beside ${folder}/lib/libgomp.so.1)
    if(EXISTS ${beside} AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # The library that is found at run time. CMake would warn that it hides the compiler's.
      target_compile_options(libtorch INTERFACE ${OpenMP_CXX_FLAGS})
      target_link_libraries(libtorch INTERFACE ${beside})
    else()
      target_link_libraries(libtorch INTERFACE OpenMP::OpenMP_CXX)
    endif()
  endif()
endfunction()
