/* Whether the processor multiplies pairs of numbers of 16 bits, which share a word. */
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
#define HAS_DSP 1
#else
#define HAS_DSP 0
#endif

/* Whether it has the vectors of a Cortex-M55. The file of the weights has those that kernels with
   vectors read under the same conditions. */
#if defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
#include <arm_mve.h>
#define HAS_MVE 1
#else
#define HAS_MVE 0
#endif

/* Whether it has those of RISC-V, of any length and with elements of 32 bits or longer. */
#if defined(__riscv_vector) && __riscv_v_intrinsic >= 12000
#include <riscv_vector.h>
#define HAS_RVV 1
#else
#define HAS_RVV 0
#endif

#if HAS_MVE || HAS_RVV
#define INLINED static inline __attribute__((always_inline))
#endif

#if HAS_DSP
static inline uint32_t four_bytes(const void *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Bytes 0 and 2 of a word as a pair. */
static inline uint32_t even_bytes(uint32_t word)
{
    uint32_t pair;
    __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
    return pair;
}

/* Bytes 1 and 3. */
static inline uint32_t odd_bytes(uint32_t word)
{
    uint32_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* A sum and the products of two pairs. */
static inline int32_t plus_products(int32_t sum, uint32_t a, uint32_t b)
{
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}
#endif

/* Whether loads of bytes have no sign, as Xtensa's: two shifts make it, and one makes 256 times the
   number, whose sums are shifted back. Products are of 16 bits. The order of instructions is not
   left to the compiler, which has more numbers at once than there are registers. */
#if defined(__XTENSA__) && defined(__GNUC__)
#define FEW_SIGNS 1
#define LIFTED(x) ((int16_t)(uint16_t)((uint32_t)(x) << 8))
#define LIFTED_BYTE(at) LIFTED(*(const uint8_t *)(at))
#define LOWERED(sum) ((sum) >> 8)
#define IN_ORDER() __asm__ volatile("" : : : "memory")
#else
#define FEW_SIGNS 0
#define LIFTED(x) ((int8_t)(x))
#define LIFTED_BYTE(at) (*(at))
#define LOWERED(sum) (sum)
#define IN_ORDER() (void)0
#endif

/* a * b / 2^32, halves rounded up. */
static inline int32_t rounded_high(int32_t a, int32_t b)
{
#if HAS_DSP
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
#elif HAS_SHORT_PRODUCTS
    return (product_by_halves(a, b, 0) + 1) >> 1;
#else
    return (int32_t)(((int64_t)a * b + ((int64_t)1 << 31)) >> 32);
#endif
}

#if !HAS_RVV
/* value / 2, rounded down and clamped to a byte. */
static inline int32_t saturated_half(int32_t value)
{
#if HAS_DSP
    int32_t half;
    __asm__("ssat %0, #8, %1, asr #1" : "=r"(half) : "r"(value));
    return half;
#else
    return clamped(value >> 1, -128, 127);
#endif
}
#endif
