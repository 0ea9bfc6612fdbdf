#!/usr/bin/env bash
# Prepares the working copy: a Python >= 3.11 with venv, .venv, and the package in it (editable) with
# the development tools at the versions of constraints.txt. Does nothing when nothing has changed.
#
#   tools/setup.sh                        what `make setup` runs
#   tools/setup.sh --with-test-packages   also the Debian packages that the tests use
#   tools/setup.sh --with-vm-packages     also those of the tests in a virtual machine
#
# PYTHON=/path/to/python chooses the interpreter.
set -euo pipefail

# Debian packages that tests need beyond Python: the one place where they are listed.
TEST_PACKAGES=(
    apache2-bin busybox-static docker-compose docker.io e2fsprogs haproxy hpcc httperf iproute2
    libmpich-dev libopenmpi-dev mpich munge nftables openmpi-bin python3-http-parser runc slurm-wlm
    slurm-wlm-torque systemd wrk zookeeper
)
# What `make test-vm` needs besides.
VM_PACKAGES=(debootstrap qemu-system-x86)

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly VENV=.venv STAMP=.venv/.setup-stamp
# Programs written for Apache Mesos, which the tests run against our HTTP API as they are: pymesos, and others
# beside it. A part of pymesos is a Debian package (what PyPI has of that builds on no current Python), so they
# get Debian's Python.
readonly DEBIAN_PYTHON=/usr/bin/python3 PYMESOS=.cache/pymesos PYMESOS_PINS=tests/kit/pymesos/requirements.txt

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# --- Debian packages ---------------------------------------------------------------------------

# How to become root, as words to put before a command; fails when there is no way.
root_prefix() {
    if [ "$(id -u)" -eq 0 ]; then
        return 0
    elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        echo sudo
    else
        return 1
    fi
}

apt_install() {
    local sudo
    command -v apt-get >/dev/null || { say "no apt-get here; please install: $*"; return 1; }
    sudo=$(root_prefix) || { say "not root and no sudo; please run: apt-get install $*"; return 1; }
    say "installing Debian packages: $*"
    # A package list that cannot be refreshed may still be good enough to install from.
    $sudo apt-get -qq update </dev/null || say "apt-get update failed; trying with the lists that are here"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" \
        </dev/null >/dev/null
}

missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
    done
}

install_test_packages() {
    local missing
    command -v dpkg-query >/dev/null || { say "not a Debian system; tests use: $*"; return 0; }
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0
    # Without the packages the tests that need them skip, each naming its tool; only CI insists.
    apt_install "${missing[@]}" || [ "${CI:-}" != true ] || die "test packages are missing: ${missing[*]}"
}

pymesos_fingerprint() { { pwd; "$DEBIAN_PYTHON" --version; cat "$PYMESOS_PINS"; } | sha256sum; }

make_pymesos() {
    "$DEBIAN_PYTHON" -m venv --clear --system-site-packages --without-pip "$PYMESOS" &&
        "$VENV/bin/python" -m pip --disable-pip-version-check --python "$PYMESOS/bin/python" \
            install -qq --no-deps --ignore-installed --requirement "$PYMESOS_PINS"
}

# The environment of tests/kit/pymesos. Without it its tests skip; only CI insists.
install_pymesos() {
    local stamp=$PYMESOS/.setup-stamp
    "$DEBIAN_PYTHON" -c 'import http_parser' 2>/dev/null || return 0
    [ "$(cat "$stamp" 2>/dev/null)" != "$(pymesos_fingerprint)" ] || return 0
    say "installing pymesos into $PYMESOS"
    if make_pymesos; then
        pymesos_fingerprint >"$stamp"
    else
        rm -rf "$PYMESOS"
        [ "${CI:-}" != true ] || die "pymesos, which tests need, cannot be installed"
    fi
}

# --- Python ------------------------------------------------------------------------------------

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
# Debian splits ensurepip off into python3-venv; without it `python -m venv` fails half-way.
has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

candidates() {
    local name
    if [ -n "${PYTHON:-}" ]; then
        echo "$PYTHON"
        return
    fi
    for name in python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do
        command -v "$name" || true
    done
    ls -d "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/3.*/bin/python3 2>/dev/null || true
}

# Prints the interpreter to use: the first that is new enough and can make a venv; installs
# python3-venv when only that is missing.
find_python() {
    local python without_venv='' version
    while read -r python; do
        new_enough "$python" || continue
        if has_venv "$python"; then
            echo "$python"
            return
        fi
        without_venv=${without_venv:-$python}
    done < <(candidates)
    [ -n "$without_venv" ] || die "no Python 3.11 or newer found (looked for: $(candidates | tr '\n' ' '));" \
        "install one (Debian, Ubuntu: apt-get install python3 python3-venv) or set PYTHON=/path/to/python"
    version=$("$without_venv" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    apt_install "python$version-venv" || apt_install python3-venv || true
    has_venv "$without_venv" || die "$without_venv cannot make virtual environments:" \
        "install python$version-venv, then run this again"
    echo "$without_venv"
}

# --- The virtual environment -------------------------------------------------------------------

# Everything that what is installed depends on; tool settings in pyproject.toml do not count.
fingerprint() {
    {
        pwd
        awk '/^\[/ { keep = /^\[(build-system|project|tool\.setuptools)/ } keep' pyproject.toml
        cat constraints.txt tools/setup.sh
    } | sha256sum
}

up_to_date() { [ -x "$VENV/bin/python" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$(fingerprint)" ]; }

make_venv() {
    local python
    if "$VENV/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        return
    fi
    python=$(find_python)
    say "creating $VENV with $("$python" --version) ($python)"
    "$python" -m venv --clear "$VENV"
}

install_package() {
    local pip=("$VENV/bin/python" -m pip --disable-pip-version-check install -qq --constraint constraints.txt)
    say "installing mesos-py and its development tools into $VENV (a minute or two the first time)"
    # The build back end is pinned like the rest, hence no isolated build with the newest one.
    "${pip[@]}" setuptools
    # compat: a plain path entry. The default, an import hook, costs every Python start 10-20 ms.
    "${pip[@]}" --no-build-isolation --config-settings editable_mode=compat --editable '.[dev]'
}

# Where Python is told to write no bytecode (PYTHONDONTWRITEBYTECODE, which many container images set) each
# process that starts would compile all of our code anew: a third of the time until an agent is ready. When
# nothing has changed this looks at the files' times only. Code that cannot be compiled is for the linters
# to report.
compile_ours() {
    "$VENV/bin/python" -m compileall -q mesos_py master agent frameworks >/dev/null || true
}

main() {
    local packages=() started=$SECONDS
    case "${1:-}" in
        '') ;;
        --with-test-packages) packages=("${TEST_PACKAGES[@]}") ;;
        --with-vm-packages) packages=("${TEST_PACKAGES[@]}" "${VM_PACKAGES[@]}") ;;
        *) die "unknown argument: $1 (known: --with-test-packages, --with-vm-packages)" ;;
    esac
    # One set-up at a time in one working copy; the lock goes with the process.
    exec 9<"tools/setup.sh"
    flock 9
    if ! up_to_date; then
        make_venv
        rm -f "$STAMP"
        install_package
        fingerprint >"$STAMP"
        say "ready after $((SECONDS - started)) s"
    fi
    compile_ours
    if [ "${#packages[@]}" -gt 0 ]; then
        install_test_packages "${packages[@]}"
        install_pymesos
    fi
}

main "$@"
