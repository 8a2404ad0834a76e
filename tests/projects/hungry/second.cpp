#include "table.h"

extern "C" int second(int i) {
  static const volatile int table[] = TABLE;
  return table[i];
}
