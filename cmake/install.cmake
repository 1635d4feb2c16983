# What `cmake --install` puts under a prefix: the command, the library, its headers, and what find_package(trocar) needs.
include(CMakePackageConfigHelpers)

install(TARGETS trocar_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS trocar EXPORT trocarTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/trocar DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(trocar_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trocar)
install(EXPORT trocarTargets NAMESPACE trocar:: DESTINATION ${trocar_package_dir})
configure_package_config_file(cmake/trocarConfig.cmake.in ${PROJECT_BINARY_DIR}/package/trocarConfig.cmake
                              INSTALL_DESTINATION ${trocar_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/trocarConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/trocarConfig.cmake
              ${PROJECT_BINARY_DIR}/package/trocarConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/trocarTool.cmake
        DESTINATION ${trocar_package_dir})
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
