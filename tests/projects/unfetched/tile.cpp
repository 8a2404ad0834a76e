#include <cutlass/numeric_types.h>

int tile() { return 0; }
