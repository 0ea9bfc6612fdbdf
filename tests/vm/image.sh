#!/usr/bin/env bash
# Builds the disk of the virtual machine: Debian's base system of this release with its cloud kernel and
# Python. Once; the result stays in DIRECTORY (disk.img, kernel, initrd) until this file or init.sh changes.
#
#   tests/vm/image.sh DIRECTORY
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=$1
stamp=$(cat "$here/image.sh" "$here/init.sh" | sha256sum)

mkdir -p "$directory"
exec 9>"$directory/lock"
flock 9
if [ "$(cat "$directory/stamp" 2>/dev/null)" = "$stamp" ]; then
    exit 0
fi

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# From where this machine gets its own packages.
mirror=$(apt-get indextargets --format '$(SUITE) $(REPO_URI) $(COMPONENT)' 'Identifier: Packages' |
    awk '$3 == "main" && $1 !~ /-/ { print $2; exit }')
root=$(mktemp -d "$directory/root.XXXXXX")
trap 'rm -rf "$root"' EXIT

debootstrap --variant=minbase --include=python3,linux-image-cloud-amd64 "$release" "$root" "$mirror" \
    >"$directory/debootstrap.log" 2>&1 || { tail -n 20 "$directory/debootstrap.log" >&2; exit 1; }
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc "$root"/usr/share/locale
install -m 755 "$here/init.sh" "$root/vm-init"
cp "$root"/boot/vmlinuz-* "$directory/kernel"
cp "$root"/boot/initrd.img-* "$directory/initrd"
rm -f "$directory/disk.img"
mke2fs -q -t ext4 -d "$root" "$directory/disk.img" 900M
echo "$stamp" >"$directory/stamp"
