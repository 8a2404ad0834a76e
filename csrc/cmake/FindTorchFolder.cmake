# Sets Torch_ROOT, the folder of the torch package; TORCH_RELEASE, as 2.10; TORCH_CXX11_ABI, 0 or 1.
#
# find_package(Torch) would do it too, but looks for the whole CUDA toolkit that torch was built
# with. Headers and libraries are all that is needed, and no import of torch.

if(NOT Torch_ROOT)
  find_package(Python COMPONENTS Interpreter REQUIRED)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE Torch_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
    RESULT_VARIABLE torch_missing)
  if(torch_missing)
    message(FATAL_ERROR
      "fusedops compiles against torch's headers, and ${Python_EXECUTABLE} has no torch.\n"
      "Install the torch to build for and build without isolation "
      "(pip install --no-build-isolation .), or name the folder of a torch package with "
      "CMAKE_ARGS=-DTorch_ROOT=FOLDER.")
  endif()
endif()

# torch/version.h is the file's place in every release, but since 2.10 it only includes the second.
foreach(header IN ITEMS headeronly/version.h csrc/api/include/torch/version.h)
  if(NOT TORCH_RELEASE AND EXISTS "${Torch_ROOT}/include/torch/${header}")
    file(STRINGS "${Torch_ROOT}/include/torch/${header}" lines
      REGEX "^#define TORCH_VERSION_(MAJOR|MINOR) ")
    string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" TORCH_RELEASE "${lines}")
  endif()
endforeach()
set(c10 "${Torch_ROOT}/lib/libc10.so")
if(NOT TORCH_RELEASE MATCHES "^[0-9]+\\.[0-9]+$" OR NOT EXISTS "${c10}")
  message(FATAL_ERROR
    "Torch_ROOT=${Torch_ROOT} is not the folder of a torch package: it must hold "
    "include/torch with a version.h, and lib/libc10.so.")
endif()

# The library itself says which std::string it was compiled with.
file(STRINGS "${c10}" error_constructors REGEX "_ZN3c105ErrorC[12]E.*cxx11" LIMIT_COUNT 1)
if(error_constructors)
  set(TORCH_CXX11_ABI 1)
else()
  set(TORCH_CXX11_ABI 0)
endif()
