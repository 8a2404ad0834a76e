#include "local_attention/local_attention.h"
#include "local_attention/tile_cpu.h"

namespace fusedops {
namespace {

/// Room for one block, for either direction.
template <class T>
struct Workspace {
  explicit Workspace(int dim)
      : width(padded(dim, Lanes<T>::count)),
        buffer(10 * kTile * kAttentionDim + 2 * kTile * kTile) {
    T* next = buffer.data();
    for (T** part : {&row, &row2, &column, &column2, &turned, &turned2, &sum, &sum2}) {
      *part = next;
      next += kTile * kAttentionDim;
    }
    weights = next;
    slopes = weights + kTile * kTile;
  }

  int width;
  std::vector<T> buffer;
  /// Tiles of rows and columns, of columns transposed, of results; kTile rows of `width`.
  T *row, *row2, *column, *column2, *turned, *turned2, *sum, *sum2;
  /// kTile × kTile.
  T *weights, *slopes;
};

/// Columns [first, last) that any row of the block meets.
struct Span {
  std::int64_t first, last;
};

Span span(const LocalAttention& call, const AttentionBlock& block, AttentionBand band) {
  return {std::max<std::int64_t>(0, block.first - band.before),
          std::min(call.rows, block.first + block.count + band.after)};
}

/// Of row r of a block, the columns of the tile from `column` on that it meets: [first, last).
struct Seen {
  int first, last;
};

FUSEDOPS_INLINE Seen seen(AttentionBand band, std::int64_t row, std::int64_t column, int columns) {
  const std::int64_t first = std::max<std::int64_t>(0, row - band.before - column);
  const std::int64_t last = std::min<std::int64_t>(columns, row + band.after + 1 - column);
  return {static_cast<int>(std::min<std::int64_t>(first, columns)),
          static_cast<int>(std::max<std::int64_t>(last, 0))};
}

template <class T, class Storage>
T dot(const Storage* a, const Storage* b, int dim) {
  T sum = 0;
  for (int d = 0; d < dim; ++d) {
    sum += T(widen(a[d])) * T(widen(b[d]));
  }
  return sum;
}

/// One row, number by number: in a product of tiles a NaN reaches rows that do not see it, as 0 ·
/// NaN.
template <class Storage, class T>
void forward_row(const LocalAttention& call, const AttentionBlock& block, std::int64_t row,
                 T* out) {
  const auto q = call.q.matrix<Storage>(block.batch, block.head) + row * call.q.row;
  const auto k = call.k.matrix<Storage>(block.batch, block.head);
  const auto v = call.v.matrix<Storage>(block.batch, block.head);
  const AttentionBand keys = band(call, false);
  const std::int64_t first = std::max<std::int64_t>(0, row - keys.before);
  const std::int64_t last = std::min(call.rows, row + keys.after + 1);
  const T scale = static_cast<T>(call.scale);
  T most = -std::numeric_limits<T>::infinity();
  for (std::int64_t j = first; j < last; ++j) {
    const T score = dot<T>(q, k + j * call.k.row, call.dim) * scale;
    most = score <= most ? most : score;
  }
  T sum = 0;
  std::fill(out, out + call.dim, T(0));
  for (std::int64_t j = first; j < last; ++j) {
    const T weight = std::exp(dot<T>(q, k + j * call.k.row, call.dim) * scale - most);
    sum += weight;
    for (int d = 0; d < call.dim; ++d) {
      out[d] += weight * widen(v[j * call.v.row + d]);
    }
  }
  for (int d = 0; d < call.dim; ++d) {
    out[d] /= sum;
  }
  static_cast<T*>(call.lse)[block.values(call) + row] = most + std::log(sum);
}

/// Adds a tile of keys to the rows' running maximum, sum of weights and weighted sum of values.
template <class T>
FUSEDOPS_INLINE void softmax_tile(const LocalAttention& call, const AttentionBlock& block,
                                  AttentionBand keys, std::int64_t column, int columns,
                                  Workspace<T>& work, T* most, T* total) {
  const T scale = static_cast<T>(call.scale);
  for (int r = 0; r < block.count; ++r) {
    T* weights = work.weights + r * kTile;
    const Seen one = seen(keys, block.first + r, column, columns);
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const T outside = scale < 0 ? infinity : -infinity;
    std::fill(weights, weights + one.first, outside);
    std::fill(weights + std::max(one.first, one.last), weights + kTile, outside);
    const T tile_most = scale_and_find_greatest(weights, scale);
    const T greatest = tile_most > most[r] ? tile_most : most[r];
    const T shift = greatest == -infinity ? T(0) : greatest;
    const T factor = exponential(most[r] - shift);
    for (int j = 0; j < kTile; ++j) {
      weights[j] = exponential(weights[j] - shift);
    }
    const T sum = sum_of_tile(weights);
    total[r] = total[r] * factor + sum;
    most[r] = greatest;
    for (int d = 0; d < work.width; ++d) {
      work.sum[r * work.width + d] *= factor;
    }
  }
}

template <class Storage>
FUSEDOPS_ATTENTION_LOOP void forward_block(const LocalAttention& call, std::int64_t number,
                                           Workspace<Compute<Storage>>& work) {
  using T = Compute<Storage>;
  const AttentionBlock block(call, number);
  const AttentionBand keys = band(call, false);
  const Span all = span(call, block, keys);
  const auto k = call.k.matrix<Storage>(block.batch, block.head);
  const auto v = call.v.matrix<Storage>(block.batch, block.head);
  const int width = work.width;
  load_rows(work.row, width, call.q.matrix<Storage>(block.batch, block.head), call.q.row,
            block.first, block.count, call.dim);
  T most[kTile], total[kTile];
  std::fill(most, most + kTile, -std::numeric_limits<T>::infinity());
  std::fill(total, total + kTile, T(0));
  std::fill(work.sum, work.sum + kTile * width, T(0));
  std::fill(work.weights + block.count * kTile, work.weights + kTile * kTile, T(0));
  for (std::int64_t column = all.first; column < all.last; column += kTile) {
    const int columns = static_cast<int>(std::min<std::int64_t>(kTile, all.last - column));
    load_rows(work.column, width, k, call.k.row, column, columns, call.dim);
    transpose(work.turned, work.column, width, call.dim);
    load_rows(work.column, width, v, call.v.row, column, columns, call.dim);
    std::fill(work.weights, work.weights + block.count * kTile, T(0));
    multiply(work.row, width, work.turned, kTile, work.weights, kTile, kTile, call.dim);
    softmax_tile(call, block, keys, column, columns, work, most, total);
    multiply(work.weights, kTile, work.column, width, work.sum, width, width, columns);
  }
  const auto out = call.out.matrix<Storage>(block.batch, block.head);
  for (int r = 0; r < block.count; ++r) {
    T* sum = work.sum + r * width;
    const std::int64_t row = block.first + r;
    for (int d = 0; d < call.dim; ++d) {
      sum[d] /= total[r];
    }
    static_cast<T*>(call.lse)[block.values(call) + row] = most[r] + std::log(total[r]);
    if (!finite(sum, call.dim)) {
      forward_row<Storage>(call, block, row, sum);
    }
    for (int d = 0; d < call.dim; ++d) {
      out[row * call.out.row + d] = narrow<Storage>(sum[d]);
    }
  }
}

/// What backward reads of rows and columns: of queries q and grad, of keys k and v.
template <class Storage>
struct Sides {
  const Storage *row, *row2, *column, *column2;
  std::int64_t row_stride, row2_stride, column_stride, column2_stride;

  Sides(const LocalAttention& call, const AttentionBlock& block, bool of_keys) {
    const AttentionTensor* t[] = {&call.q, &call.grad, &call.k, &call.v};
    const int at = of_keys ? 2 : 0;
    const auto take = [&](int n, const Storage*& data, std::int64_t& stride) {
      data = t[n]->matrix<Storage>(block.batch, block.head);
      stride = t[n]->row;
    };
    take(at, row, row_stride);
    take(at + 1, row2, row2_stride);
    take(2 - at, column, column_stride);
    take(3 - at, column2, column2_stride);
  }
};

/// As forward_row, of one row's gradients: dq, or dk and dv.
template <class Storage, class T>
void backward_row(const LocalAttention& call, const AttentionBlock& block, bool of_keys,
                  std::int64_t row, T* sum, T* sum2) {
  const Sides<Storage> sides(call, block, of_keys);
  const AttentionBand meets = band(call, of_keys);
  const T* lse = static_cast<const T*>(call.lse) + block.values(call);
  const T* delta = static_cast<const T*>(call.delta) + block.values(call);
  const std::int64_t last = std::min(call.rows, row + meets.after + 1);
  const T scale = static_cast<T>(call.scale);
  std::fill(sum, sum + call.dim, T(0));
  std::fill(sum2, sum2 + call.dim, T(0));
  for (std::int64_t j = std::max<std::int64_t>(0, row - meets.before); j < last; ++j) {
    const Storage* column = sides.column + j * sides.column_stride;
    const Storage* column2 = sides.column2 + j * sides.column2_stride;
    const std::int64_t query = of_keys ? j : row;
    const T score = dot<T>(sides.row + row * sides.row_stride, column, call.dim) * scale;
    const T weight = std::exp(score - lse[query]);
    const T change = dot<T>(sides.row2 + row * sides.row2_stride, column2, call.dim);
    const T slope = weight * (change - delta[query]);
    for (int d = 0; d < call.dim; ++d) {
      sum[d] += slope * widen(column[d]);
      sum2[d] += weight * widen(column2[d]);
    }
  }
  for (int d = 0; d < call.dim; ++d) {
    sum[d] *= scale;
  }
}

/// From scores and changes to the weights and the slopes that they are multiplied by.
template <class T>
FUSEDOPS_INLINE void slope_tile(const LocalAttention& call, const AttentionBlock& block,
                                bool of_keys, std::int64_t column, int columns,
                                Workspace<T>& work) {
  const T scale = static_cast<T>(call.scale);
  const AttentionBand meets = band(call, of_keys);
  const T* lse = static_cast<const T*>(call.lse) + block.values(call);
  const T* delta = static_cast<const T*>(call.delta) + block.values(call);
  for (int r = 0; r < block.count; ++r) {
    T* weights = work.weights + r * kTile;
    T* slopes = work.slopes + r * kTile;
    const Seen one = seen(meets, block.first + r, column, columns);
    T row_lse[kTile], row_delta[kTile];
    for (int j = one.first; j < one.last; ++j) {
      row_lse[j] = lse[of_keys ? column + j : block.first + r];
      row_delta[j] = delta[of_keys ? column + j : block.first + r];
    }
    for (int j = one.first; j < one.last; ++j) {
      weights[j] = exponential(weights[j] * scale - row_lse[j]);
      slopes[j] = weights[j] * (slopes[j] - row_delta[j]);
    }
    for (T* values : {weights, slopes}) {
      std::fill(values, values + one.first, T(0));
      std::fill(values + std::max(one.first, one.last), values + kTile, T(0));
    }
  }
}

/// rowsum(grad · out) - grad_lse of a block of queries.
template <class Storage>
FUSEDOPS_INLINE void store_delta(const LocalAttention& call, const AttentionBlock& block) {
  using T = Compute<Storage>;
  const auto grad = call.grad.matrix<Storage>(block.batch, block.head);
  const auto out = call.out.matrix<Storage>(block.batch, block.head);
  for (std::int64_t row = block.first; row < block.first + block.count; ++row) {
    const std::int64_t at = block.values(call) + row;
    const T sum = dot<T>(grad + row * call.grad.row, out + row * call.out.row, call.dim);
    const T* grad_lse = static_cast<const T*>(call.grad_lse);
    static_cast<T*>(call.delta)[at] = grad_lse == nullptr ? sum : sum - grad_lse[at];
  }
}

template <class Storage>
FUSEDOPS_ATTENTION_LOOP void backward_block(const LocalAttention& call, bool of_keys,
                                            std::int64_t number,
                                            Workspace<Compute<Storage>>& work) {
  using T = Compute<Storage>;
  const AttentionBlock block(call, number);
  const Sides<Storage> sides(call, block, of_keys);
  const Span all = span(call, block, band(call, of_keys));
  const int width = work.width;
  if (!of_keys) {
    store_delta<Storage>(call, block);
  }
  load_rows(work.row, width, sides.row, sides.row_stride, block.first, block.count, call.dim);
  load_rows(work.row2, width, sides.row2, sides.row2_stride, block.first, block.count, call.dim);
  std::fill(work.sum, work.sum + kTile * width, T(0));
  std::fill(work.sum2, work.sum2 + kTile * width, T(0));
  for (std::int64_t column = all.first; column < all.last; column += kTile) {
    const int columns = static_cast<int>(std::min<std::int64_t>(kTile, all.last - column));
    load_rows(work.column, width, sides.column, sides.column_stride, column, columns, call.dim);
    load_rows(work.column2, width, sides.column2, sides.column2_stride, column, columns, call.dim);
    transpose(work.turned, work.column, width, call.dim);
    transpose(work.turned2, work.column2, width, call.dim);
    std::fill(work.weights, work.weights + 2 * kTile * kTile, T(0));
    multiply(work.row, width, work.turned, kTile, work.weights, kTile, kTile, call.dim);
    multiply(work.row2, width, work.turned2, kTile, work.slopes, kTile, kTile, call.dim);
    slope_tile(call, block, of_keys, column, columns, work);
    multiply(work.slopes, kTile, work.column, width, work.sum, width, width, columns);
    if (of_keys) {
      multiply(work.weights, kTile, work.column2, width, work.sum2, width, width, columns);
    }
  }
  const AttentionTensor& result = of_keys ? call.dk : call.dq;
  const auto first = result.matrix<Storage>(block.batch, block.head);
  const auto second = call.dv.matrix<Storage>(block.batch, block.head);
  for (int r = 0; r < block.count; ++r) {
    T* sum = work.sum + r * width;
    T* sum2 = work.sum2 + r * width;
    const std::int64_t row = block.first + r;
    for (int d = 0; d < call.dim; ++d) {
      sum[d] *= static_cast<T>(call.scale);
    }
    if (!finite(sum, call.dim) || !finite(sum2, call.dim)) {
      backward_row<Storage>(call, block, of_keys, row, sum, sum2);
    }
    for (int d = 0; d < call.dim; ++d) {
      first[row * result.row + d] = narrow<Storage>(sum[d]);
      if (of_keys) {
        second[row * call.dv.row + d] = narrow<Storage>(sum2[d]);
      }
    }
  }
}

}  // namespace

std::int64_t local_attention_blocks(const LocalAttention& call) {
  return call.batches * call.heads * ((call.rows + kTile - 1) / kTile);
}

void local_attention_forward_cpu(const LocalAttention& call, std::int64_t begin, std::int64_t end) {
  with_storage(call.dtype, [&](auto tag) {
    Workspace<Compute<decltype(tag)>> work(call.dim);
    for (std::int64_t number = begin; number < end; ++number) {
      forward_block<decltype(tag)>(call, number, work);
    }
  });
}

void local_attention_backward_cpu(const LocalAttention& call, bool of_keys, std::int64_t begin,
                                  std::int64_t end) {
  with_storage(call.dtype, [&](auto tag) {
    Workspace<Compute<decltype(tag)>> work(call.dim);
    for (std::int64_t number = begin; number < end; ++number) {
      backward_block<decltype(tag)>(call, of_keys, number, work);
    }
  });
}

}  // namespace fusedops
