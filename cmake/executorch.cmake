# The bridge to ExecuTorch: a library of its own that is compiled with the headers of ExecuTorch's wheel and opened at
# run time. Without the wheel it is left out, and `trocar engines` says so.
function(trocar_executorch_bridge target folder)
  set_source_files_properties(${folder}/find.cpp PROPERTIES COMPILE_DEFINITIONS
                                                            TROCAR_BRIDGE_FOLDER="${PROJECT_BINARY_DIR}")
  file(GLOB wheels ${PROJECT_SOURCE_DIR}/.deps/executorch-*/executorch)
  if(DEFINED ENV{TROCAR_DEPS})
    file(GLOB wheels $ENV{TROCAR_DEPS}/executorch-*/executorch)
  endif()
  list(POP_BACK wheels wheel)
  set(TROCAR_EXECUTORCH "${wheel}" CACHE PATH "The folder of ExecuTorch's package: with lib/ and include/ in it")
  set(package ${TROCAR_EXECUTORCH})
  if(NOT package OR NOT EXISTS ${package}/lib/libexecutorch.so OR NOT EXISTS ${package}/include/executorch)
    message(STATUS "ExecuTorch's wheel is not there: its engine will say so")
    return()
  endif()
  add_library(trocar_executorch MODULE ${folder}/bridge/bridge.cpp)
  set_target_properties(trocar_executorch PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                                                     LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                                                     BUILD_RPATH ${package}/lib)
  target_compile_features(trocar_executorch PRIVATE cxx_std_20)
  target_include_directories(
    trocar_executorch SYSTEM PRIVATE ${package}/include ${package}/include/executorch/runtime/core/portable_type/c10)
  target_compile_definitions(trocar_executorch PRIVATE C10_USING_CUSTOM_GENERATED_MACROS ET_EVENT_TRACER_ENABLED
                                                       ET_USE_THREADPOOL)
  target_link_libraries(trocar_executorch PRIVATE ${package}/lib/libexecutorch.so
                                                  ${package}/lib/libexecutorch_threadpool.so)
  # Who builds the library wants its engine too; they meet at run time only.
  add_dependencies(${target} trocar_executorch)
  install(TARGETS trocar_executorch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trocar)
endfunction()
