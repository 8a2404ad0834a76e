#pragma once

#include <cmath>

/// exp and log of float64 have a newer version in glibc since 2.29, which differs in how errors are
/// told and would keep a library that is built there from loading on an older one.
#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver exp,exp@GLIBC_2.2.5");
__asm__(".symver log,log@GLIBC_2.2.5");
#endif
