// No CPython API: the library is loaded by name, so one wheel serves every Python.
extern "C" int answer() { return 42; }
