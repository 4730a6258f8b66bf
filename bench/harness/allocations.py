"""Counts what is asked of the heap: a library to be loaded before all others."""

import subprocess
from pathlib import Path
from typing import Final

_COUNTER: Final = r"""
#include <cstddef>
#include <atomic>
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
static std::atomic<long> count{0};
static std::atomic<bool> counts{false};
static void note() { if (counts) ++count; }
void start() { count = 0; counts = true; }
long stop() { counts = false; return count; }
void* malloc(std::size_t n) { note(); return __libc_malloc(n); }
void* calloc(std::size_t a, std::size_t b) { note(); return __libc_calloc(a, b); }
void* realloc(void* p, std::size_t n) { note(); return __libc_realloc(p, n); }
void* memalign(std::size_t a, std::size_t n) { note(); return __libc_memalign(a, n); }
void* aligned_alloc(std::size_t a, std::size_t n) { note(); return __libc_memalign(a, n); }
int posix_memalign(void** p, std::size_t a, std::size_t n) {
  note();
  *p = __libc_memalign(a, n);
  return *p == nullptr ? 12 : 0;
}
}
"""


def counter(folder: Path) -> Path:
    """Compile the library, whose `stop()` tells how often memory was asked for since `start()`."""
    source, library = folder / "counter.cpp", folder / "counter.so"
    source.write_text(_COUNTER, encoding="utf-8")
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library
