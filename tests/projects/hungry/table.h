// Two million numbers: a compiler holds about 300 MB for them.
#pragma once
#define TIMES_10(x) x x x x x x x x x x
#define TEN 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
#define MILLION TIMES_10(TIMES_10(TIMES_10(TIMES_10(TIMES_10(TEN)))))
#define TABLE {MILLION MILLION 0}
