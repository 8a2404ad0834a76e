#pragma once

#include <cstdint>
#include <cstring>

#include "common/dtype.h"

// Conversions without a branch, so that the compiler vectorises the loops around them.

namespace fusedops {

inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float widen(float value) {
  return value;
}
inline double widen(double value) {
  return value;
}

inline float widen(BFloat16 value) {
  return float_of(std::uint32_t{value.bits} << 16);
}

/// After https://github.com/Maratyszcza/FP16: both readings of the bits, normal and subnormal, are
/// made by float arithmetic, and the right one is selected.
inline float widen(Float16 value) {
  const std::uint32_t word = std::uint32_t{value.bits} << 16;
  const std::uint32_t sign = word & 0x80000000u;
  const std::uint32_t magnitude = word + word;
  const std::uint32_t normal = bits_of(float_of((magnitude >> 4) + (0xE0u << 23)) * 0x1.0p-112f);
  const std::uint32_t subnormal = bits_of(float_of((magnitude >> 17) | (126u << 23)) - 0.5f);
  return float_of(sign | (magnitude < (1u << 27) ? subnormal : normal));
}

template <class Storage>
Storage narrow(Compute<Storage> value);

template <>
inline float narrow<float>(float value) {
  return value;
}

template <>
inline double narrow<double>(double value) {
  return value;
}

/// Rounds to nearest, ties to even; NaN becomes the quiet NaN 0x7FC0, as in torch.
template <>
inline BFloat16 narrow<BFloat16>(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<std::uint16_t>(value != value ? 0x7FC0u : rounded)};
}

/// Rounds to nearest, ties to even; overflows to infinity. Same source as `widen`: adding a power
/// of two chosen from the exponent makes the float adder round at the half's last place.
template <>
inline Float16 narrow<Float16>(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = bits & 0x80000000u;
  const std::uint32_t magnitude = bits + bits;
  const float scaled = (float_of(bits & 0x7FFFFFFFu) * 0x1.0p+112f) * 0x1.0p-110f;
  const std::uint32_t exponent = magnitude & 0xFF000000u;
  const std::uint32_t bias = exponent < 0x71000000u ? 0x71000000u : exponent;
  const std::uint32_t rounded = bits_of(float_of((bias >> 1) + 0x07800000u) + scaled);
  const std::uint32_t finite = ((rounded >> 13) & 0x7C00u) + (rounded & 0x0FFFu);
  const std::uint32_t result = magnitude > 0xFF000000u ? 0x7E00u : finite;
  return {static_cast<std::uint16_t>((sign >> 16) | result)};
}

}  // namespace fusedops
