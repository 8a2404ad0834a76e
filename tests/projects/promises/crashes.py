# torch==2.14.*
import ctypes

ctypes.string_at(0)
