#!/usr/bin/env bash
# Prepares what programs that run on any Linux since RHEL 8 are linked with, and prints the folder:
# static libraries of Debian 12, and stubs of shared ones with symbols up to glibc 2.28. A second
# call only prints. Needs Debian 12 on x86-64 with scripts/setup.sh's packages; no root.
#
# PETLAB_HOME   the folder is made there (default ~/.local/share/petlab)
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

# What LibTorch's wheels need themselves (manylinux_2_28).
limits=GLIBC=2.28,GLIBCXX=3.4.22,CXXABI=1.3.11

digest=$(cat scripts/portable/{parts.sh,link_stubs.py,missing.c} | sha256sum | cut -c1-12)
folder=$PETLAB_HOME/portable-$digest
if [ -e "$folder/lib" ]; then
  printf '%s\n' "$folder"
  exit
fi
# shellcheck source=/dev/null
[ "$(uname -m)/$(. /etc/os-release && printf %s "$VERSION_CODENAME")" = x86_64/bookworm ] ||
  die "portable programs are built on Debian 12 (bookworm) on x86-64 only"
mkdir -p "$PETLAB_HOME"
log=$PETLAB_HOME/portable.log
exec 3>&1 >"$log" 2>&1
trap 'tail -n 15 "$log" >&2; die "failed (the whole output: $log)"' ERR

scratch=$(mktemp -d "$PETLAB_HOME/.portable.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{apt/lists/partial,apt/cache/archives/partial,packages,source,old,new,made/lib}
made=$scratch/made
old=$scratch/old # the packages of Debian 11
new=$scratch/new # those of Debian 12

# ---- Debian's packages: the C library of Debian 11, the static libraries and sources of Debian 12
# shellcheck disable=SC2016  # apt's own variable
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' |
  head -n 1)
options="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
cat >"$scratch/apt/sources.list" <<LIST
deb $options ${mirror:-http://deb.debian.org/debian} bullseye main
deb $options ${mirror:-http://deb.debian.org/debian} bookworm main
deb-src $options ${mirror:-http://deb.debian.org/debian} bookworm main
LIST
apt=(apt-get -o "Dir::Etc::sourcelist=$scratch/apt/sources.list" -o Dir::Etc::sourceparts=-
  -o "Dir::State::lists=$scratch/apt/lists" -o "Dir::Cache=$scratch/apt/cache"
  -o "APT::Sandbox::User=$(id -un)")
"${apt[@]}" update
cd "$scratch/packages" || exit
"${apt[@]}" download libc6/bullseye libc6-dev/bullseye libstdc++6/bullseye
for package in *.deb; do dpkg-deb -x "$package" "$old"; done
rm -- *.deb
"${apt[@]}" download libzstd-dev/bookworm libssl-dev/bookworm
for package in *.deb; do dpkg-deb -x "$package" "$new"; done
"${apt[@]}" source --download-only sentencepiece/bookworm curl/bookworm fmtlib/bookworm
for source in sentencepiece curl fmtlib; do
  mkdir "$scratch/source/$source"
  tar -xf "$source"_*.orig.tar.?z --strip-components=1 -C "$scratch/source/$source"
done
# Debian's headers of SentencePiece, with which petlab is compiled, come from patches.
tar -xf sentencepiece_*.debian.tar.xz -C "$scratch/source/sentencepiece"
grep -vE '^#|^$|static' "$scratch/source/sentencepiece/debian/patches/series" |
  while read -r patch; do
    GIT_CEILING_DIRECTORIES=$scratch git -C "$scratch/source/sentencepiece" apply --whitespace=nowarn "debian/patches/$patch"
  done
cd "$OLDPWD" || exit

# ---- Stubs, and the start files and static part of the same glibc
triple=x86_64-linux-gnu
scripts/portable/link_stubs.py "$made/lib" "$limits" \
  "$old/lib/$triple"/{libc.so.6,libm.so.6,libdl.so.2,libpthread.so.0,librt.so.1} \
  "$old/lib/$triple/ld-linux-x86-64.so.2" "$old/usr/lib/$triple/libstdc++.so.6"
cp "$old/usr/lib/$triple"/{crt1.o,Scrt1.o,crti.o,crtn.o,libc_nonshared.a} "$made/lib"
gcc -O2 -fPIC -fvisibility=hidden -c scripts/portable/missing.c -o "$scratch/missing.o"
ar rcs "$made/lib/libmissing.a" "$scratch/missing.o"
cat >"$made/lib/libc.so" <<SCRIPT
GROUP ( libc.so.6 libpthread.so.0 libc_nonshared.a libmissing.a AS_NEEDED ( ld-linux-x86-64.so.2 ) )
SCRIPT
for library in libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
  ln -s "$library" "$made/lib/${library%.so.*}.so"
done

# ---- Static libraries
# The libraries' messages must not name this folder.
export CFLAGS="-O2 -fPIC -ffile-prefix-map=$scratch/source/=" CCACHE_BASEDIR=$scratch
export CXXFLAGS=$CFLAGS
launcher=$(command -v ccache || true)
build() { # build NAME TARGETS CMAKE-OPTIONS...
  local name=$1 targets=$2
  shift 2
  # shellcheck disable=SC2086  # several targets
  cmake -S "$scratch/source/$name" -B "$scratch/build/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_STANDARD=17 -DCMAKE_{C,CXX}_COMPILER_LAUNCHER="$launcher" "$@" &&
    cmake --build "$scratch/build/$name" -j "$(jobs_for_build)" --target $targets
}
build sentencepiece "sentencepiece-static sentencepiece_train-static" -DSPM_ENABLE_SHARED=OFF \
  -DSPM_ENABLE_TCMALLOC=OFF
build curl libcurl -DBUILD_SHARED_LIBS=OFF -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF \
  -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DOPENSSL_ROOT_DIR="$new/usr" -DCURL_USE_LIBSSH2=OFF \
  -DUSE_LIBIDN2=OFF -DCURL_BROTLI=OFF -DCURL_ZSTD=OFF -DENABLE_UNIX_SOCKETS=OFF \
  -DENABLE_MANUAL=OFF -DCURL_CA_BUNDLE=none -DCURL_CA_PATH=none \
  -DOPENSSL_INCLUDE_DIR="$new/usr/include" \
  -DOPENSSL_SSL_LIBRARY="$new/usr/lib/$triple/libssl.a" \
  -DOPENSSL_CRYPTO_LIBRARY="$new/usr/lib/$triple/libcrypto.a" \
  -DCMAKE_C_FLAGS="$CFLAGS -I$new/usr/include/$triple"
for file in format os; do
  # shellcheck disable=SC2086  # several flags
  g++ -std=c++17 $CXXFLAGS -I "$scratch/source/fmtlib/include" \
    -c "$scratch/source/fmtlib/src/$file.cc" -o "$scratch/fmt_$file.o"
done
ar rcs "$made/lib/libfmt.a" "$scratch"/fmt_{format,os}.o
cp "$scratch"/build/sentencepiece/src/libsentencepiece{,_train}.a "$made/lib"
cp "$scratch/build/curl/lib/libcurl.a" "$made/lib"
cp "$new/usr/lib/$triple"/{libzstd,libssl,libcrypto}.a "$made/lib"
cp /usr/lib/$triple/{libyaml-cpp,libsqlite3,libSQLiteCpp,libz,libarchive,liblzma,libbz2}.a \
  /usr/lib/$triple/{libnettle,libpcre2-8,libicui18n,libicuuc,libjemalloc_pic}.a "$made/lib"
cp /usr/lib/$triple/libboost_system.a "$made/lib"
# XAR, which petlab neither reads nor writes, would bring in libxml2. -30 is ARCHIVE_FATAL.
echo 'int archive_write_set_format_xar(void* archive) { (void)archive; return -30; }' |
  gcc -x c -O2 -fPIC -c - -o "$scratch/no_xar.o"
ar d "$made/lib/libarchive.a" archive_write_set_format_xar.o
ar rs "$made/lib/libarchive.a" "$scratch/no_xar.o"

# ---- ICU's data: 30 MB, of which only the rules for grapheme clusters are used
(
  mkdir "$scratch/icu"
  cd "$scratch/icu" || exit
  ar x /usr/lib/$triple/libicudata.a
  object=$(ls icudt*_dat.o)
  data=${object%_dat.o}
  objcopy -O binary --only-section=.rodata "$object" "$data.dat"
  icupkg -l "$data.dat" | grep -vxE 'brkitr/(char\.brk|root\.res|res_index\.res)|root\.res|pool\.res' \
    >unused.txt
  icupkg --ignore-deps -r unused.txt "$data.dat" kept.dat
  symbol=$(nm "$object" | awk '$2 == "R" {print $3}')
  printf '.section .rodata\n.balign 16\n.globl %s\n.type %s, @object\n%s: .incbin "kept.dat"\n%s\n' \
    "$symbol" "$symbol" "$symbol" '.section .note.GNU-stack,"",@progbits' >kept.s
  gcc -c kept.s -o kept.o
  ar rcs "$made/lib/libicudata.a" kept.o
)

# ---- The licences of what is linked statically
mkdir "$made/licences"
for package in libyaml-cpp-dev libsqlite3-dev libsqlitecpp-dev zlib1g-dev libarchive-dev \
  liblzma-dev libbz2-dev nettle-dev libpcre2-dev libicu-dev libjemalloc-dev libcli11-dev \
  nlohmann-json3-dev libstdc++-12-dev libsentencepiece-dev libfmt-dev libcurl4-openssl-dev; do
  cp -L "/usr/share/doc/$package/copyright" "$made/licences/$package.txt"
done
for package in libzstd-dev libssl-dev; do
  cp "$new/usr/share/doc/$package/copyright" "$made/licences/$package.txt"
done
cp -L /usr/share/doc/libboost-system1*-dev/copyright "$made/licences/libboost-system-dev.txt"

mv "$made" "$folder" || [ -e "$folder/lib" ]
printf '%s\n' "$folder" >&3
