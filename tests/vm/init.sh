#!/bin/sh
# Process 1 of the virtual machine: mounts what tests need, unpacks what the host put on the second
# disk, runs its script `run`, says with which status that ended, and switches the machine off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
hostname cgroup-v2
ip link set lo up 2>/dev/null
mkdir -p /payload
cd /payload
tar xf /dev/vdb
sh ./run </dev/null 2>&1
echo "VM-STATUS $?"
sync
echo o >/proc/sysrq-trigger
sleep 60
