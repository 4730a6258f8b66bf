#include "coding/symbol_decoder.hpp"

#include "errors.hpp"

#ifdef ARENITE_HAVE_ZSTD
#define ZSTD_STATIC_LINKING_ONLY  // for the frames without a magic number
#include <zstd.h>
#endif

namespace arenite {

#ifdef ARENITE_HAVE_ZSTD

struct SymbolDecoder::Context {
  Context() : zstd(ZSTD_createDCtx()) {
    if (zstd == nullptr) { throw SystemError("no memory to decode weights"); }
    ZSTD_DCtx_setParameter(zstd, ZSTD_d_format, ZSTD_f_zstd1_magicless);
  }
  ~Context() { ZSTD_freeDCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ZSTD_DCtx* zstd;
};

void SymbolDecoder::reserve(std::size_t count) {
  if (context_ == nullptr) { context_ = std::make_unique<Context>(); }
  if (count > buffer_.size()) { buffer_.resize(count); }
}

bool SymbolDecoder::decode(const std::byte* code, std::size_t size, std::uint8_t* to,
                           std::size_t count) {
  return ZSTD_decompressDCtx(context_->zstd, to, count, code, size) == count;
}

std::size_t SymbolDecoder::context_size() const {
  return context_ == nullptr ? 0 : ZSTD_sizeof_DCtx(context_->zstd);
}

#else

struct SymbolDecoder::Context {};

void SymbolDecoder::reserve(std::size_t) {
  throw ProgramError("its weights are coded, and this build has no libzstd to decode them");
}

bool SymbolDecoder::decode(const std::byte*, std::size_t, std::uint8_t*, std::size_t) {
  return false;
}

std::size_t SymbolDecoder::context_size() const { return 0; }

#endif

void SymbolDecoder::release() {
  context_ = nullptr;
  std::vector<std::uint8_t>().swap(buffer_);
}

SymbolDecoder::SymbolDecoder() = default;
SymbolDecoder::~SymbolDecoder() = default;

}  // namespace arenite
