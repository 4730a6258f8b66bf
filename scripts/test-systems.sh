#!/usr/bin/env bash
# Run the tests with every Python and on every Debian that Arenite is for, on the committed files:
#
#     scripts/test-systems.sh [SYSTEM...] [-- ARGUMENT OF PYTEST...]
#
# A system is an interpreter, as python3.12, or a release of Debian, as trixie. Debian's are made
# by debootstrap, as root, in build/systems or $ARENITE_SYSTEMS; what is there already is used again.
# A system that is not to be had is skipped, and said; the exit code is 1 if one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${ARENITE_SYSTEMS:-$PWD/build/systems}

systems=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  systems+=("$1")
  shift
done
[ $# -eq 0 ] || shift
[ ${#systems[@]} -gt 0 ] || systems=(python3.11 python3.12 python3.13 bookworm trixie)
results=()
skip() { results+=("$1: skipped: $2"); }

# The committed files, beside an environment that is kept.
copy() {
  rm -rf "$1/tree"
  mkdir -p "$1/tree"
  git archive HEAD | tar -x -C "$1/tree"
}

# Says how to set up and test what was copied to a folder: folder, interpreter.
commands() {
  printf 'cd %q && scripts/debian-packages.sh && make VENV=%q PYTHON=%q %q && ' \
    "$1/tree" "$1/venv" "$2" "$1/venv/.installed"
  printf '%q -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder' "$1/venv/bin/python"
}

with_python() {
  command -v "$1" >/dev/null && "$1" -c 'import venv' 2>/dev/null ||
    { skip "$1" "there is no such interpreter"; return 0; }
  local place=$folder/$1
  copy "$place"
  bash -c "$(commands "$place" "$1") \"\$@\"" "$@"
}

on_debian() {
  local place=$folder/$1
  if [ "$(id -u)" -ne 0 ]; then
    skip "$1" "needs root"
    return 0
  fi
  if [ ! -e "$place/etc/debian_version" ]; then
    command -v debootstrap >/dev/null || { skip "$1" "needs debootstrap"; return 0; }
    debootstrap --variant=minbase --include=ca-certificates,make,python3 "$1" "$place" \
      >"$place.log" 2>&1 || { skip "$1" "debootstrap failed: $(tail -1 "$place.log")"; return 0; }
  fi
  cp /etc/resolv.conf /etc/hosts "$place/etc/"
  copy "$place/srv/arenite"
  # What is mounted here is seen by nobody else, and goes with the process.
  unshare --mount bash -c '
    place=$1 commands=$2
    shift 2
    mount -t proc proc "$place/proc"
    mount --rbind /dev "$place/dev"
    exec chroot "$place" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM=dumb \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "$commands" "$@"
  ' - "$place" "$(commands /srv/arenite python3) \"\$@\"" "$@"
}

mkdir -p "$folder"
failed=0
for system in "${systems[@]}"; do
  echo "== $system"
  before=${#results[@]}
  case $system in
    python*) run=with_python ;;
    *) run=on_debian ;;
  esac
  if ! "$run" "$system" "$@"; then
    results+=("$system: FAILED")
    failed=1
  elif [ ${#results[@]} -eq "$before" ]; then
    results+=("$system: passed")
  fi
done
printf '%s\n' "${results[@]}"
exit "$failed"
