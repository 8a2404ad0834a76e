# Sets FUSEDOPS_WITH_CUDA and, where it is ON, enables the language. Sets FUSEDOPS_WITH_SM90A: ON where
# the build is for SM 9.0 among others and its compiler knows 90a; FUSEDOPS_ARCHITECTURES is then what
# CMAKE_CUDA_ARCHITECTURES states, without 90a where 90 is there beside it.
#
# The environment's FORCE_CUDA decides, as for torch's own extensions: 1 with CUDA, 0 without;
# unset, CUDA is used where torch has it and there is a compiler for it.

# Torch brings the shared runtime; a static copy would keep state of its own beside it.
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)

set(FUSEDOPS_WITH_CUDA OFF)
if("$ENV{FORCE_CUDA}" STREQUAL "1")
  set(FUSEDOPS_WITH_CUDA ON)
elseif("$ENV{FORCE_CUDA}" STREQUAL "" AND EXISTS "${Torch_ROOT}/lib/libtorch_cuda.so")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(FUSEDOPS_WITH_CUDA ON)
  endif()
endif()

if(FUSEDOPS_WITH_CUDA)
  if(NOT EXISTS "${Torch_ROOT}/lib/libtorch_cuda.so")
    message(FATAL_ERROR
      "FORCE_CUDA=1 asks for CUDA kernels, and the torch in ${Torch_ROOT} was built without CUDA.\n"
      "Name a torch that has CUDA with CMAKE_ARGS=-DTorch_ROOT=FOLDER, or set FORCE_CUDA=0.")
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES all-major)
  endif()
  enable_language(CUDA)
endif()

set(FUSEDOPS_WITH_SM90A OFF)
if(FUSEDOPS_WITH_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0)
  set(FUSEDOPS_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
  if(FUSEDOPS_ARCHITECTURES STREQUAL native)
    set(FUSEDOPS_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES_NATIVE}")
  endif()
  if(FUSEDOPS_ARCHITECTURES MATCHES "(^|;)(all|all-major|90a?(-real|-virtual)?)(;|$)")
    set(FUSEDOPS_WITH_SM90A ON)
  endif()
  if(FUSEDOPS_ARCHITECTURES MATCHES "(^|;)90(-real|-virtual)?(;|$)")
    list(FILTER FUSEDOPS_ARCHITECTURES EXCLUDE REGEX "^90a")
  endif()
endif()
