# The bridge to ExecuTorch: a library of its own, compiled with the headers of ExecuTorch's wheel and opened at run
# time. Without the wheel there is no bridge, and `trocar engines` says how to get one. -DTROCAR_EXECUTORCH names the
# folder of the package; by default it is the newest one in the dependency folder, looked up again at every build.
set(TROCAR_EXECUTORCH "" CACHE PATH "Folder of the Python package executorch, with lib/ and include/ in it")

function(trocar_executorch_bridge folder)
  set(package "${TROCAR_EXECUTORCH}")
  if(package)
    if(NOT EXISTS ${package}/lib/libexecutorch.so OR NOT EXISTS ${package}/include/executorch)
      message(FATAL_ERROR "TROCAR_EXECUTORCH is ${package}, which is not the folder of the package executorch with its headers")
    endif()
  else()
    file(GLOB libraries CONFIGURE_DEPENDS ${trocar_deps}/executorch-*/executorch/lib/libexecutorch.so)
    if(NOT libraries)
      message(STATUS "No executorch wheel in ${trocar_deps}: building without its bridge")
      return()
    endif()
    list(SORT libraries COMPARE NATURAL)
    list(POP_BACK libraries newest)
    cmake_path(GET newest PARENT_PATH package)
    cmake_path(GET package PARENT_PATH package)
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
  install(TARGETS trocar_executorch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trocar)
endfunction()
