#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "common/convert_cpu.h"
#include "common/wide.h"
#include "nms/nms.h"

namespace fusedops {
namespace {

/// A flag as wide as a coordinate, so that a vector of one goes with a vector of the other.
template <class T>
struct FlagType {
  using type = std::uint32_t;
};
template <>
struct FlagType<double> {
  using type = std::uint64_t;
};
template <class T>
using Flag = typename FlagType<T>::type;

/// Boxes by falling score, class after class, each coordinate an array.
template <class T>
struct Columns {
  explicit Columns(std::int64_t n) : x1(n), y1(n), x2(n), y2(n), area(n), dropped(n) {}
  std::vector<T> x1, y1, x2, y2, area;
  std::vector<Flag<T>> dropped;
};

/// std::max and std::min, of which torchvision's kernel takes the first with a NaN.
template <class T>
inline T greatest(T a, T b) {
  return a < b ? b : a;
}
template <class T>
inline T least(T a, T b) {
  return b < a ? b : a;
}

/// Every operation, and the order of them, is torchvision's.
template <class T>
struct DropLoop {
  template <class Isa>
  FUSEDOPS_INLINE static void run(Isa, T x1, T y1, T x2, T y2, T area, T threshold, std::int64_t n,
                                  const T* __restrict__ other_x1, const T* __restrict__ other_y1,
                                  const T* __restrict__ other_x2, const T* __restrict__ other_y2,
                                  const T* __restrict__ other_area, Flag<T>* __restrict__ dropped) {
    for (std::int64_t i = 0; i < n; ++i) {
      const T width = greatest(T(0), least(x2, other_x2[i]) - greatest(x1, other_x1[i]));
      const T height = greatest(T(0), least(y2, other_y2[i]) - greatest(y1, other_y1[i]));
      const T common = width * height;
      dropped[i] |= common / (area + other_area[i] - common) > threshold ? 1 : 0;
    }
  }
};

/// Drops those of the boxes `begin` to `end` that overlap box `row`.
template <class T>
void drop(Columns<T>& c, std::int64_t row, std::int64_t begin, std::int64_t end, T threshold) {
  const auto from = [&](const std::vector<T>& of) { return of.data() + begin; };
  run_wide<DropLoop<T>>(c.x1[row], c.y1[row], c.x2[row], c.y2[row], c.area[row], threshold,
                        end - begin, from(c.x1), from(c.y1), from(c.x2), from(c.y2), from(c.area),
                        c.dropped.data() + begin);
}

/// Boxes are taken in panels: what a panel keeps is held against all later boxes at once, by
/// threads that have blocks of these, which stay in their first cache.
constexpr std::int64_t kPanelBoxes = 512;
constexpr std::int64_t kBlockBoxes = 1024;
/// Fewer pairs than this a thread does before another has been woken.
constexpr std::int64_t kPairsForThreads = std::int64_t{1} << 19;

/// Sweeps the boxes `first` to `last`, which are all those of a class.
template <class T>
void sweep(Columns<T>& c, std::int64_t first, std::int64_t last, T threshold,
           const ParallelFor& parallel) {
  std::vector<std::int64_t> kept;
  for (std::int64_t panel = first; panel < last; panel += kPanelBoxes) {
    const std::int64_t end = std::min(panel + kPanelBoxes, last);
    kept.clear();
    for (std::int64_t row = panel; row < end; ++row) {
      if (c.dropped[row] == 0) {
        kept.push_back(row);
        drop(c, row, row + 1, end, threshold);
      }
    }
    const auto apply = [&](std::int64_t block, std::int64_t end_block) {
      for (; block < end_block; ++block) {
        const std::int64_t begin = end + block * kBlockBoxes;
        for (const std::int64_t row : kept) {
          drop(c, row, begin, std::min(begin + kBlockBoxes, last), threshold);
        }
      }
    };
    const std::int64_t blocks = (last - end + kBlockBoxes - 1) / kBlockBoxes;
    if (static_cast<std::int64_t>(kept.size()) * (last - end) < kPairsForThreads) {
      apply(0, blocks);
    } else {
      parallel(blocks, apply);
    }
  }
}

/// The places in `order`, class after class, and where each class begins and the last ends.
struct Classes {
  Classes(const std::int64_t* classes, const std::int64_t* order, std::int64_t n)
      : places(n), begins{0} {
    if (classes == nullptr) {
      std::iota(places.begin(), places.end(), std::int64_t{0});
      begins.push_back(n);
      return;
    }
    std::unordered_map<std::int64_t, std::size_t> numbers;
    std::vector<std::size_t> number(n);
    for (std::int64_t place = 0; place < n; ++place) {
      number[place] = numbers.emplace(classes[order[place]], numbers.size()).first->second;
    }
    begins.resize(numbers.size() + 2);
    for (const std::size_t one : number) {
      ++begins[one + 2];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (std::int64_t place = 0; place < n; ++place) {
      places[begins[number[place] + 1]++] = place;
    }
    begins.pop_back();
  }
  std::vector<std::int64_t> places, begins;
};

/// The greatest T that is not above `value`: a T exceeds the one where it exceeds the other.
template <class T>
T not_above(double value) {
  const T nearest = static_cast<T>(value);
  return nearest > value ? std::nextafter(nearest, -std::numeric_limits<T>::infinity()) : nearest;
}

template <class Storage>
std::int64_t run_nms(const NmsInput& input, const std::int64_t* order, std::int64_t* kept,
                     const ParallelFor& parallel) {
  using T = Compute<Storage>;
  const auto boxes = static_cast<const Storage*>(input.boxes);
  const Classes classes(input.classes, order, input.n);
  Columns<T> c(input.n);
  for (std::int64_t i = 0; i < input.n; ++i) {
    const Storage* box = boxes + 4 * order[classes.places[i]];
    c.x1[i] = widen(box[0]);
    c.y1[i] = widen(box[1]);
    c.x2[i] = widen(box[2]);
    c.y2[i] = widen(box[3]);
    c.area[i] = (c.x2[i] - c.x1[i]) * (c.y2[i] - c.y1[i]);
  }
  const auto threshold = not_above<T>(input.threshold);
  const auto count = static_cast<std::int64_t>(classes.begins.size()) - 1;
  // One class is swept by all threads; of several, each has some to itself.
  parallel(count, [&](std::int64_t one, std::int64_t end) {
    for (; one < end; ++one) {
      sweep(c, classes.begins[one], classes.begins[one + 1], threshold, parallel);
    }
  });
  std::vector<char> keep(input.n);
  for (std::int64_t i = 0; i < input.n; ++i) {
    keep[classes.places[i]] = c.dropped[i] == 0;
  }
  std::int64_t total = 0;
  for (std::int64_t place = 0; place < input.n; ++place) {
    if (keep[place] != 0) {
      kept[total++] = order[place];
    }
  }
  return total;
}

}  // namespace

std::int64_t nms_cpu(const NmsInput& input, const std::int64_t* order, std::int64_t* kept,
                     const ParallelFor& parallel) {
  std::int64_t total = 0;
  with_storage(input.dtype,
               [&](auto tag) { total = run_nms<decltype(tag)>(input, order, kept, parallel); });
  return total;
}

}  // namespace fusedops
