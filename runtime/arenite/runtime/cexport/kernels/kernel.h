/* Kernels are kept apart from what calls them, so that their stacks do not add up. */
#if defined(__GNUC__)
#define KERNEL static __attribute__((noinline)) void
#else
#define KERNEL static void
#endif
