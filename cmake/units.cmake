function(trocar_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  # g++ 12 sees overlaps and uninitialised reads in its own library when it optimises much.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized
                                             -Wno-free-nonheap-object)
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

# What nearly every source includes, compiled once for a target or for the one named after it.
function(trocar_precompile target)
  if(NOT TROCAR_PRECOMPILE)
    return()
  endif()
  # So that ccache can tell that nothing changed.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  if(ARGC GREATER 1 AND NOT ARGV1 STREQUAL target)
    target_precompile_headers(${target} REUSE_FROM ${ARGV1})
  else()
    target_precompile_headers(
      ${target} PRIVATE <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream>
      <functional> <map> <memory> <mutex> <numeric> <optional> <ranges> <set> <span> <string> <string_view> <thread>
      <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
  endif()
endfunction()

# The sources of folders, tests left out.
function(trocar_folder target)
  foreach(dir IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${dir}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
    target_sources(${target} PRIVATE ${sources})
  endforeach()
endfunction()

# One test program per folder below the roots that holds *_test.cpp.
function(trocar_tests)
  include(GoogleTest)
  set(sanitized 0)
  if(TROCAR_SANITIZE)
    set(sanitized 1)
  endif()
  foreach(root IN LISTS ARGN)
    file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${root}/*_test.cpp)
    set(folders "")
    foreach(test IN LISTS tests)
      cmake_path(GET test PARENT_PATH folder)
      list(APPEND folders ${folder})
    endforeach()
    list(REMOVE_DUPLICATES folders)
    foreach(folder IN LISTS folders)
      file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cpp)
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${folder})
      string(REPLACE "/" "_" name ${name}_test)
      add_executable(${name} ${sources})
      target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
      target_link_libraries(${name} PRIVATE trocar fmt::fmt GTest::gmock GTest::gtest_main)
      target_compile_definitions(${name} PRIVATE TROCAR_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                 TROCAR_SANITIZED=${sanitized})
      trocar_warnings(${name})
      # All tests are compiled alike: the first one's precompiled headers serve the others.
      if(NOT DEFINED first)
        set(first ${name})
      endif()
      trocar_precompile(${name} ${first})
      # What tests do is not worth the time that optimising them takes.
      target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
      gtest_discover_tests(${name} PROPERTIES TIMEOUT 900 DISCOVERY_TIMEOUT 60)
    endforeach()
  endforeach()
endfunction()
