#!/usr/bin/env bash
# Build exported C source in the systems of packages that it has files for, by their own tools as far
# as pip and Debian have them: scripts/test-packages.sh [PYTHON]. IDF_PATH names a checkout of
# ESP-IDF, PACK_XSD the schema of CMSIS-Packs; what needs them is skipped without them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
tools=build/packages

if [ ! -x $tools/kconfig/bin/alldefconfig ]; then  # ESP-IDF has a kconfiglib of its own
  "$python" -m venv $tools/main
  $tools/main/bin/pip install -q platformio idf-component-manager esp-idf-kconfig xmlschema
  "$python" -m venv $tools/kconfig
  $tools/kconfig/bin/pip install -q kconfiglib
fi
if ! command -v arduino-builder >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends arduino-builder \
    >build/packages/install.log 2>&1 || echo "test-packages: arduino-builder cannot be installed"
fi

PATH=$PWD/$tools/kconfig/bin:$PWD/$tools/main/bin:$PATH "$python" -m pytest tests/runtime/cexport/test_packages.py "${@:2}"
