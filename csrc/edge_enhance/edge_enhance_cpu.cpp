#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/convert_wide.h"
#include "common/wide.h"
#include "edge_enhance/edge_enhance.h"

namespace fusedops {
namespace {

/// Columns are taken so many at a time, that the rows between reading and writing stay in the
/// first cache.
constexpr std::int64_t kTile = 512;

template <class Storage>
struct Plane {
  const Storage* in;
  Storage* out;
  std::int64_t height, width;
  bool adjoint;
};

template <class T>
struct Filter {
  T amount;
  T weight[3];
};

template <class T>
FUSEDOPS_INLINE void scale(T* values, std::int64_t n, T factor) {
  for (std::int64_t i = 0; i < n; ++i) {
    values[i] *= factor;
  }
}

/// Columns [begin - Radius, end + Radius) of row `y`, widened, borders reflected.
template <int Radius, class Isa, class Storage, class T>
FUSEDOPS_INLINE void read_row(Isa isa, const Plane<Storage>& plane, std::int64_t y,
                              std::int64_t begin, std::int64_t end, T* __restrict__ line) {
  const std::int64_t first = std::max<std::int64_t>(begin - Radius, 0);
  const std::int64_t last = std::min(end + Radius, plane.width) - 1;
  T* const at = line + Radius - begin;  // at[x] is column x
  widen_all(isa, plane.in + y * plane.width + first, last - first + 1, at + first);
  if (plane.adjoint) {
    if (first == 0) {
      at[0] *= 2;
    }
    if (last == plane.width - 1) {
      at[last] *= 2;
    }
    if (y == 0 || y == plane.height - 1) {
      scale(at + first, last - first + 1, T(2));
    }
  }
  for (std::int64_t x = begin - Radius; x < first; ++x) {
    at[x] = at[reflected(x, plane.width)];
  }
  for (std::int64_t x = last + 1; x < end + Radius; ++x) {
    at[x] = at[reflected(x, plane.width)];
  }
}

/// sums[i] = the filter along the row at line[Radius + i]
template <int Radius, class T>
FUSEDOPS_INLINE void along(const Filter<T>& filter, const T* __restrict__ line, std::int64_t n,
                           T* __restrict__ sums) {
  const T w0 = filter.weight[0];
  const T w1 = filter.weight[1];
  const T w2 = filter.weight[2];
  for (std::int64_t i = 0; i < n; ++i) {
    const T* const at = line + i;
    T sum = w0 * at[Radius] + w1 * at[Radius - 1] + w1 * at[Radius + 1];
    if constexpr (Radius == 2) {
      sum += w2 * at[0] + w2 * at[4];
    }
    sums[i] = sum;
  }
}

/// The result for the row whose values are `centre` and whose sums and neighbours' are `rows`.
template <int Radius, class T>
FUSEDOPS_INLINE void across(const Filter<T>& filter, const T* __restrict__ centre,
                            const T* const (&rows)[2 * Radius + 1], std::int64_t n,
                            T* __restrict__ result) {
  const T w0 = filter.weight[0];
  const T w1 = filter.weight[1];
  const T w2 = filter.weight[2];
  const T amount = filter.amount;
  const T* __restrict__ const same = rows[Radius];
  const T* __restrict__ const above = rows[Radius - 1];
  const T* __restrict__ const below = rows[Radius + 1];
  const T* __restrict__ const top = rows[0];
  const T* __restrict__ const bottom = rows[2 * Radius];
  for (std::int64_t i = 0; i < n; ++i) {
    T blurred = w0 * same[i] + w1 * above[i] + w1 * below[i];
    if constexpr (Radius == 2) {
      blurred += w2 * top[i] + w2 * bottom[i];
    }
    result[i] = centre[i] + amount * (centre[i] - blurred);
  }
}

template <int Radius, class Isa, class Storage, class T>
FUSEDOPS_INLINE void write_row(Isa isa, const Plane<Storage>& plane, std::int64_t y,
                               std::int64_t begin, std::int64_t end, T* __restrict__ result) {
  if (plane.adjoint) {
    if (y == 0 || y == plane.height - 1) {
      scale(result, end - begin, T(0.5));
    }
    if (begin == 0) {
      result[0] *= T(0.5);
    }
    if (end == plane.width) {
      result[end - begin - 1] *= T(0.5);
    }
  }
  narrow_all(isa, result, end - begin, plane.out + y * plane.width + begin);
}

/// Rows [top, bottom) of one plane.
template <int Radius>
struct Rows {
  template <class Isa, class Storage, class T>
  FUSEDOPS_INLINE static void run(Isa isa, const Plane<Storage> plane, const Filter<T> filter,
                                  std::int64_t top, std::int64_t bottom) {
    constexpr int window = 2 * Radius + 1;
    T lines[window][kTile + 2 * Radius];
    T sums[window][kTile];
    T result[kTile];
    for (std::int64_t begin = 0; begin < plane.width; begin += kTile) {
      const std::int64_t end = std::min(begin + kTile, plane.width);
      for (std::int64_t y = top - Radius; y < bottom + Radius; ++y) {
        const auto slot = [&](std::int64_t of) { return (of - top + Radius) % window; };
        T* const line = lines[slot(y)];
        read_row<Radius>(isa, plane, reflected(y, plane.height), begin, end, line);
        along<Radius>(filter, line, end - begin, sums[slot(y)]);
        const std::int64_t done = y - Radius;
        if (done >= top) {
          const T* rows[window];
          for (int k = 0; k < window; ++k) {
            rows[k] = sums[slot(done - Radius + k)];
          }
          across<Radius>(filter, lines[slot(done)] + Radius, rows, end - begin, result);
          write_row<Radius>(isa, plane, done, begin, end, result);
        }
      }
    }
  }
};

template <class Storage>
void edge_enhance_rows(const EdgeEnhance& call, std::int64_t begin, std::int64_t end) {
  using T = Compute<Storage>;
  Filter<T> filter{static_cast<T>(call.amount), {}};
  std::copy(call.weight, call.weight + 3, filter.weight);
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t top = row % call.height;
    const std::int64_t bottom = std::min(call.height, top + end - row);
    const std::int64_t offset = (row - top) * call.width;
    const Plane<Storage> plane{static_cast<const Storage*>(call.in) + offset,
                               static_cast<Storage*>(call.out) + offset, call.height, call.width,
                               call.adjoint};
    if (call.radius == 1) {
      run_wide<Rows<1>>(plane, filter, top, bottom);
    } else {
      run_wide<Rows<2>>(plane, filter, top, bottom);
    }
    row += bottom - top;
  }
}

}  // namespace

void edge_enhance_cpu(const EdgeEnhance& call, std::int64_t begin, std::int64_t end) {
  with_storage(call.dtype, [&](auto tag) { edge_enhance_rows<decltype(tag)>(call, begin, end); });
}

}  // namespace fusedops
