# What flatc makes of a unit's schemas: their classes, and the binary form of the last one, for reflection. Made when
# the build is configured, so that tools that only read sources find it: #include "formats/NAME/SCHEMA_generated.h".
find_program(TROCAR_FLATC flatc REQUIRED)

function(trocar_flatbuffers target folder)
  set(into ${PROJECT_BINARY_DIR}/flatbuffers)
  string(REGEX REPLACE "^src/" "" below ${folder})
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/${folder}/ OUTPUT_VARIABLE schemas)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schemas})
  # Files that would be the same keep their time: nothing is compiled anew for them.
  set(fresh ${into}/.fresh)
  file(MAKE_DIRECTORY ${fresh})
  execute_process(COMMAND ${TROCAR_FLATC} --cpp --scoped-enums --bfbs-gen-embed -o ${fresh} ${schemas}
                  COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB made RELATIVE ${fresh} ${fresh}/*.h)
  foreach(header IN LISTS made)
    configure_file(${fresh}/${header} ${into}/${below}/${header} COPYONLY)
  endforeach()
  file(REMOVE_RECURSE ${fresh})
  target_include_directories(${target} SYSTEM PRIVATE ${into})
endfunction()
