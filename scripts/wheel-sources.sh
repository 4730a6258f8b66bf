#!/usr/bin/env bash
# Fetch the sources that scripts/wheel-libraries.sh builds, on a machine of Debian, through the
# package manager as it is configured: scripts/wheel-sources.sh [FOLDER]. Needs no privileges.
set -euo pipefail
sums=$(cd "$(dirname "$0")" && pwd)/wheel-sources.sha256
folder=${1:-build/wheel-sources}
release=trixie # Debian 13, whatever this machine has

command -v apt-get >/dev/null 2>&1 || {
  echo "error: needs apt-get: run this on a machine of Debian" >&2
  exit 1
}
mkdir -p "$folder/apt/parts" "$folder/apt/lists/partial"
cd "$folder"
if sha256sum --check --status "$sums" 2>/dev/null; then
  exit 0
fi

# The configured places of packages, as places of that release's sources. Apt keeps no other
# state than in this folder.
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
as_sources() {
  sed -E -e 's/^deb(-src)?( |\[)/deb-src\2/' -e 's/^Types:.*/Types: deb-src/' \
    -e "s/\<$own\>/$release/g" "$@" 2>/dev/null || true
}
as_sources /etc/apt/sources.list >apt/parts/all.list
for file in /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  [ -e "$file" ] && as_sources "$file" >"apt/parts/${file##*/}"
done
options=(-qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$PWD/apt/parts"
  -o "Dir::State::Lists=$PWD/apt/lists" -o "Dir::Cache::srcpkgcache=" -o "Dir::Cache::pkgcache="
  -o APT::Sandbox::User=root)
apt-get "${options[@]}" update
# shellcheck disable=SC2046  # one word a package
apt-get "${options[@]}" source --download-only --only-source $(sed -E 's/.*  ([^_]*)_.*/\1/' "$sums")
sha256sum --check --quiet "$sums"
