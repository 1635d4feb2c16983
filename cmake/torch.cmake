# The bridge to PyTorch: a library of its own that is compiled with the headers of the Python package torch and opened at
# run time. It is built where -DTROCAR_TORCH says where the package is; without it `trocar engines` says so.
function(trocar_torch_bridge target folder)
  set(TROCAR_TORCH "" CACHE PATH "The folder of the Python package torch: with lib/ and include/ in it")
  set(library "")
  set(version "")
  if(TROCAR_TORCH)
    if(NOT EXISTS ${TROCAR_TORCH}/lib/libtorch_cpu.so OR NOT EXISTS ${TROCAR_TORCH}/include/ATen/ATen.h OR NOT EXISTS ${TROCAR_TORCH}/version.py)
      message(FATAL_ERROR "TROCAR_TORCH is ${TROCAR_TORCH}, which is not the folder of the package torch with its headers")
    endif()
    file(STRINGS ${TROCAR_TORCH}/version.py lines REGEX "^__version__ = ")
    string(REGEX REPLACE ".*['\"](.*)['\"].*" "\\1" version "${lines}")
    set(library ${TROCAR_TORCH}/lib/libtorch_cpu.so)
    add_library(trocar_torch MODULE ${folder}/bridge/bridge.cpp)
    set_target_properties(trocar_torch PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                                                  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} BUILD_RPATH ${TROCAR_TORCH}/lib
                                                  INSTALL_RPATH ${TROCAR_TORCH}/lib)
    target_compile_features(trocar_torch PRIVATE cxx_std_20)
    target_compile_definitions(trocar_torch PRIVATE NDEBUG) # the layout of some classes depends on it
    target_include_directories(trocar_torch SYSTEM PRIVATE ${TROCAR_TORCH}/include ${TROCAR_TORCH}/include/torch/csrc/api/include)
    target_link_libraries(trocar_torch PRIVATE ${TROCAR_TORCH}/lib/libtorch_cpu.so ${TROCAR_TORCH}/lib/libc10.so)
    add_dependencies(${target} trocar_torch)
    install(TARGETS trocar_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/trocar)
  endif()
  set_source_files_properties(${folder}/find.cpp PROPERTIES COMPILE_DEFINITIONS
                                                            "TROCAR_TORCH_LIBRARY=\"${library}\";TROCAR_TORCH_VERSION=\"${version}\"")
  set_source_files_properties(src/util/bridge.cpp PROPERTIES COMPILE_DEFINITIONS TROCAR_BRIDGE_FOLDER="${PROJECT_BINARY_DIR}")
endfunction()
