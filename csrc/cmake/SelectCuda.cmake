# Sets FUSEDOPS_WITH_CUDA and, where it is ON, enables the language.
#
# The environment's FORCE_CUDA decides, as for torch's own extensions: 1 with CUDA, 0 without;
# unset, CUDA is used where there is a compiler for it.

# A toolkit made of PyPI packages has no static runtime, and torch brings the shared one.
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)

set(FUSEDOPS_WITH_CUDA OFF)
if("$ENV{FORCE_CUDA}" STREQUAL "1")
  set(FUSEDOPS_WITH_CUDA ON)
elseif("$ENV{FORCE_CUDA}" STREQUAL "")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(FUSEDOPS_WITH_CUDA ON)
  endif()
endif()

if(FUSEDOPS_WITH_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES all-major)
  endif()
  enable_language(CUDA)
endif()
