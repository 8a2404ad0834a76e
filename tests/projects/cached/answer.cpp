// No CPython API: the library is loaded by name, so one wheel serves every Python.
#include "answer.h"

extern "C" int answer() { return ANSWER; }
