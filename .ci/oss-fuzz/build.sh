#!/bin/bash -eu
# Fuzz targets, seeds and the shared libraries that they need, in $OUT. OSS-Fuzz sets SRC, OUT, WORK, the compilers, their flags and
# LIB_FUZZING_ENGINE, which test/fuzz/CMakeLists.txt links. TARGETS: some of them.
source=${SOURCE:-$SRC/torc}
cmake -S "$source" -B "$WORK/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTORC_FUZZ=ON -DTORC_HARDEN=OFF
# shellcheck disable=SC2086
cmake --build "$WORK/build" --target ${TARGETS:-torc_fuzzers}

mkdir -p "$OUT/lib"
for program in "$WORK"/build/test/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    name=$(basename "$program")
    cp "$program" "$OUT/"
    # The machine that runs them has libc alone.
    ldd "$program" | sed -n 's|.* => \(/[^ ]*\) .*|\1|p' | grep -vE '/(libc|libm|libdl|libpthread|librt|libgcc_s|libresolv)\.so' |
        xargs -r cp -L -t "$OUT/lib"
    patchelf --set-rpath '$ORIGIN/lib' --force-rpath "$OUT/$name"
    corpus=$source/test/fuzz/corpus/${name#fuzz_}
    [ ! -d "$corpus" ] || (cd "$corpus" && zip -q -r "$OUT/${name}_seed_corpus.zip" .)
done
