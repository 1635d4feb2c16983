# trocar_add_tool(NAME SOURCES…): a shared library NAME.so for `trocar run --tool`. It links
# nothing of Trocar: the process that loads it has the library.
function(trocar_add_tool name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_EXTENSIONS OFF)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:trocar::trocar,INTERFACE_INCLUDE_DIRECTORIES>)
endfunction()
