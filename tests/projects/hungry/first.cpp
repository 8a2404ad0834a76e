#include "table.h"

extern "C" int first(int i) {
  static const volatile int table[] = TABLE;
  return table[i];
}
