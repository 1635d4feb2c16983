# Texts that the library carries: <dir>/*.map as the table `embedded_rules` of src/mapping.
function(trocar_embed_rules target dir)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${dir}/*.map)
  set(entries "")
  list(LENGTH files count)
  foreach(file IN LISTS files)
    cmake_path(GET file STEM LAST_ONLY name)
    file(READ ${file} text)
    # A literal holds 64 kB at most for some compilers: pieces of lines, joined by the compiler.
    string(REPLACE "\\" "\\\\" text "${text}")
    string(REPLACE "\"" "\\\"" text "${text}")
    string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
    string(APPEND entries "    {\"${name}\",\n     \"${text}\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(
    CONFIGURE
    OUTPUT ${PROJECT_BINARY_DIR}/embedded/rules.cpp
    CONTENT
      "// Written by cmake/embed.cmake.
#include \"mapping/rule_files.h\"

namespace trocar::mapping {

const EmbeddedRules embedded_rules[] = {
@entries@};
const std::size_t embedded_rules_count = ${count};

}  // namespace trocar::mapping
"
    @ONLY)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded/rules.cpp)
endfunction()

# A text file as the C string `name` of a namespace, which `header` declares. Long ones: in lines, joined by the compiler.
function(trocar_embed_text target file header namespace name)
  file(READ ${PROJECT_SOURCE_DIR}/${file} text)
  # What CMake would take for lists and references.
  string(REPLACE "[" "<OPEN>" text "${text}")
  string(REPLACE "]" "<CLOSE>" text "${text}")
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  string(REPLACE "<OPEN>" "[" text "${text}")
  string(REPLACE "<CLOSE>" "]" text "${text}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  file(
    CONFIGURE
    OUTPUT ${PROJECT_BINARY_DIR}/embedded/${name}.cpp
    CONTENT
      "// Written by cmake/embed.cmake.
#include \"${header}\"

namespace ${namespace} {

const char* const ${name} =
    \"@text@\";

}  // namespace ${namespace}
"
    @ONLY)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded/${name}.cpp)
endfunction()
