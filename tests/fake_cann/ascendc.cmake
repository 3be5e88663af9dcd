# Stands in for CANN's build functions in tests: the kernels are built on the emulation.
function(ascendc_library name kind)
  set(emulation "${CMAKE_SOURCE_DIR}/csrc/emulation/ascendc_on_host")
  add_library(${name} ${kind} ${ARGN} "${emulation}/machine.cpp" "${emulation}/global_memory.cpp")
  target_include_directories(${name} PUBLIC "${emulation}/include")
endfunction()
function(ascendc_include_directories name)
  target_include_directories(${name} ${ARGN})
endfunction()
