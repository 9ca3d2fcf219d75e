#!/bin/sh
# Installs a package with compiled ops, and keeps it only if they run.
# Usage: tools/compiled.sh VENV NAME==VERSION TORCH TRIAL, TRIAL being Python that runs an op.
# The file name of a wheel, and pip's cache, have the version of the package, but not the torch that it was compiled
# against. So each version of torch has its own folder of built wheels; wheels built elsewhere are searched in
# $WHEELS/torch-TORCH and $WHEELS.
set -eu
venv=$1 package=$2 torch=$3 trial=$4
wheels=${WHEELS:-../shared/wheels}
built=${XDG_CACHE_HOME:-$HOME/.cache}/mmguard/wheels/torch-$torch
pip() { "$venv/bin/python" -m pip "$@"; }

take() {
    [ -d "$1" ] || return 1
    pip --isolated install -q --no-index --no-deps --find-links "$1" "$package" 2>/dev/null || return 1
    if said=$("$venv/bin/python" -c "$trial" 2>&1); then return; fi
    echo "mmguard: $package from $1 does not run with torch $torch: $(echo "$said" | tail -n 1)" >&2
    pip uninstall -q -y "${package%%==*}"
    return 1
}

if take "$built" || take "$wheels/torch-$torch" || take "$wheels"; then exit; fi

echo "mmguard: compiling $package against torch $torch, once; mmcv's 77 files take about 8 minutes on 2 cores. Started" \
    "$(date '+%H:%M:%S')"
# -O1 -g0 compiles more than twice as fast as the default; only tests and demo run on these ops.
CFLAGS="${CFLAGS:--O1 -g0}" CXXFLAGS="${CXXFLAGS:--O1 -g0}" \
    pip wheel -q --no-cache-dir --no-deps --no-build-isolation --no-binary "${package%%==*}" -w "$built" "$package"
echo "mmguard: $package is in $built," "$(date '+%H:%M:%S')"
take "$built"
