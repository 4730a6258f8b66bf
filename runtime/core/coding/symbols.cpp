#include "coding/symbols.hpp"

#include "errors.hpp"

#ifdef ARENITE_HAVE_ZSTD
#define ZSTD_STATIC_LINKING_ONLY  // for the frames without a magic number
#include <zstd.h>
#endif

namespace arenite {

#ifdef ARENITE_HAVE_ZSTD

struct Symbols::Decoder {
  Decoder() : context(ZSTD_createDCtx()) {
    if (context == nullptr) {
      throw SystemError("no memory to decode weights");
    }
    ZSTD_DCtx_setParameter(context, ZSTD_d_format, ZSTD_f_zstd1_magicless);
  }
  ~Decoder() { ZSTD_freeDCtx(context); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  ZSTD_DCtx* context;
};

void Symbols::reserve(std::size_t count) {
  if (decoder_ == nullptr) {
    decoder_ = std::make_unique<Decoder>();
  }
  if (count > room_.size()) {
    room_.resize(count);
  }
}

bool Symbols::decode(const std::byte* code, std::size_t size, std::uint8_t* to, std::size_t count) {
  return ZSTD_decompressDCtx(decoder_->context, to, count, code, size) == count;
}

#else

struct Symbols::Decoder {};

void Symbols::reserve(std::size_t) {
  throw ProgramError("its weights are coded, and this build has no libzstd to decode them");
}

bool Symbols::decode(const std::byte*, std::size_t, std::uint8_t*, std::size_t) { return false; }

#endif

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

}  // namespace arenite
