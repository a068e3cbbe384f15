#!/bin/bash
# A Kubernetes node: containerd, and a kubelet, in namespaces that end with this script, which is their first process.
#   node.sh DIR NUMBER KUBE ZONE
# DIR has kubeconfig, ca.pem, kubelet.yaml, containerd.toml, cni/ and images/. NUMBER tells nodes of a machine from each other:
# the link to the host, whose own end is there, and cgroups bear it. File descriptor 3 is the host's network namespace.
set -euo pipefail
dir=$1 number=$2 kube=$3 zone=$4
link=cupolakube$number cgroup=cupola-kube-$number

# What the kubelet, containerd and CNI plugins keep at paths that cannot be set is not the machine's.
mount --make-rshared /
mount -t tmpfs -o mode=755 node /run
mount -t tmpfs -o mode=755 node /var/lib
mount -t tmpfs -o mode=755 node /var/log
mkdir -p /run/netns /run/containerd /var/lib/kubelet /var/lib/cni /var/log/containers "$dir/kubelet"
mount --bind "$dir/kubelet" /var/lib/kubelet

# The kubelet requires these settings of a machine, which are all containers': it finds them, and nothing is set.
while read -r name value; do
	echo "$value" > "$dir/sysctl-${name##*/}"
	mount --bind "$dir/sysctl-${name##*/}" "/proc/sys/$name"
done <<-EOF
	vm/overcommit_memory 1
	vm/panic_on_oom 0
	kernel/panic 10
	kernel/panic_on_oops 1
	kernel/keys/root_maxkeys 1000000
	kernel/keys/root_maxbytes 25000000
EOF

awk '$3 ~ /^cgroup/ { print $2 }' /proc/mounts | while read -r hierarchy; do
	mkdir -p "$hierarchy/$cgroup"
	for file in cpuset.cpus cpuset.mems; do
		if [ -e "$hierarchy/$file" ]; then cat "$hierarchy/$file" > "$hierarchy/$cgroup/$file"; fi
	done
done

ip link set lo up
nsenter --net=/proc/self/fd/3 ip link set "${link}n" netns 1
ip link set "${link}n" name link0 up
ip addr add "10.178.$number.2/30" dev link0
ip route add default via "10.178.$number.1"
echo 1 > /proc/sys/net/ipv4/ip_forward
ip link add pods type bridge
ip addr add "10.177.$number.1/24" dev pods
ip link set pods up

containerd -c "$dir/containerd.toml" &
until ctr -a "$dir/containerd.sock" version > /dev/null 2>&1; do
	kill -0 $!
	sleep 0.1
done
for image in "$dir"/images/*; do ctr -a "$dir/containerd.sock" -n k8s.io images import "$image"; done
"$kube" kubelet --kubeconfig "$dir/kubeconfig" --config "$dir/kubelet.yaml" --root-dir /var/lib/kubelet --cert-dir "$dir/kubelet-certs" \
	--hostname-override "node-$zone" --node-ip "10.177.$number.1" --node-labels "topology.kubernetes.io/zone=$zone" &
wait -n
