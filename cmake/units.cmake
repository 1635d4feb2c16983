function(trocar_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  # When it optimizes, g++ 12 reports overlaps, overflows and uninitialized reads in its own library.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized
                                             -Wno-free-nonheap-object
                                             -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  endif()
  if(TROCAR_UNITY)
    # Names of other sources in a batch are not shadowed, and its sources are not headers.
    target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(TROCAR_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TROCAR_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${TROCAR_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${TROCAR_SANITIZE})
  endif()
endfunction()

# Precompiles the headers that nearly every source includes, and those given. With REUSE_FROM TARGET, uses the
# precompiled header of that target, which must be compiled with the same options.
function(trocar_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "REUSE_FROM" "")
  if(NOT TROCAR_PRECOMPILE)
    return()
  endif()
  # ccache needs these to recognize that nothing changed.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>
                                           $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  if(arg_REUSE_FROM)
    target_precompile_headers(${target} REUSE_FROM ${arg_REUSE_FROM})
  else()
    target_precompile_headers(
      ${target} PRIVATE <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream>
      <functional> <map> <memory> <mutex> <numeric> <optional> <ranges> <set> <span> <string> <string_view> <thread>
      <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>
      ${PROJECT_SOURCE_DIR}/include/trocar/error.h ${PROJECT_SOURCE_DIR}/include/trocar/tensor.h ${arg_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# With TROCAR_UNITY, compiles the sources of a target in batches: those of a folder together, up to a size. CMake leaves
# out sources that have options of their own.
function(trocar_unity target)
  if(NOT TROCAR_UNITY)
    return()
  endif()
  set(batch_bytes 96000)
  get_target_property(sources ${target} SOURCES)
  set(last "")
  foreach(source IN LISTS sources)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} generated)
    if(generated OR NOT IS_ABSOLUTE ${source})
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    file(SIZE ${source} size)
    if(NOT folder STREQUAL last)
      set(last ${folder})
      set(batch 1)
      set(filled 0)
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${folder})
      string(MAKE_C_IDENTIFIER ${name} name)
    endif()
    math(EXPR filled "${filled} + ${size}")
    if(filled GREATER batch_bytes AND filled GREATER size)
      math(EXPR batch "${batch} + 1")
      set(filled ${size})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ bounds how much inlining may add to a unit; a batch may grow by as much as its sources could.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=large-unit-insns=100000>)
endfunction()

# Adds the sources of folders, without their tests.
function(trocar_folder target)
  foreach(dir IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${dir}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
    target_sources(${target} PRIVATE ${sources})
  endforeach()
endfunction()

# trocar_test_program(NAME FOLDER…): one program with the tests in and below the folders.
function(trocar_test_program name)
  set(sources "")
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_test.cpp)
    list(APPEND sources ${tests})
  endforeach()
  set(sanitized 0)
  if(TROCAR_SANITIZE)
    set(sanitized 1)
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE trocar_static fmt::fmt GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TROCAR_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TROCAR_SANITIZED=${sanitized})
  trocar_warnings(${name})
  # Tests do not repay the time that optimizing them takes.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  # All are compiled alike: the precompiled header of the first serves the others.
  get_property(first GLOBAL PROPERTY trocar_first_test_program)
  if(first)
    trocar_precompile(${name} REUSE_FROM ${first})
  else()
    trocar_precompile(${name} <gmock/gmock.h> <gtest/gtest.h>)
    set_property(GLOBAL PROPERTY trocar_first_test_program ${name})
  endif()
  trocar_unity(${name})
  gtest_discover_tests(${name} PROPERTIES TIMEOUT 900 DISCOVERY_TIMEOUT 60)
  set_property(GLOBAL APPEND PROPERTY trocar_tested ${sources})
endfunction()

# Fails where a test below the folders belongs to no program.
function(trocar_check_tested)
  get_property(tested GLOBAL PROPERTY trocar_tested)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_test.cpp)
    list(REMOVE_ITEM tests ${tested})
    if(tests)
      message(FATAL_ERROR "No test program has these: ${tests}. Add their folder to one in CMakeLists.txt")
    endif()
  endforeach()
endfunction()
