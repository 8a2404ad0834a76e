// Definitions that keep the library loadable on a C and C++ runtime older than the compiler's. Each
// is hidden, so it answers this library's own references and nobody else's.

#include <new>
#include <sstream>

/// libstdc++'s shared_ptr reads this variable, which glibc has since 2.32, to skip atomic
/// operations in a process with one thread. 0: torch always has threads.
extern "C" {
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
}

// libstdc++.so has these two constructors, which torch's checks use, since GLIBCXX_3.4.26; all that
// they call is older.
template std::basic_stringstream<char>::basic_stringstream();
template std::basic_ostringstream<char>::basic_ostringstream();

/// A vector's allocation calls it since libstdc++ has it, GLIBCXX_3.4.29, where it called an older
/// one.
namespace std {
[[noreturn]] __attribute__((visibility("hidden"))) void __throw_bad_array_new_length() {
  throw bad_array_new_length();
}
}  // namespace std
