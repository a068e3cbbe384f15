package kubetest

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"cupola/server/kube"
	"cupola/test/loopback"
)

// PodImage is an image that a node has, with one program, test/kube/pod.
const PodImage = "test.invalid/pod:1"

// maxNodes is how many nodes a machine may have at once.
const maxNodes = 100

//go:embed node.sh
var nodeScript string

// kubeletConfig has: directory, address, number. Every pod may use the images that
// the node has.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
address: %[2]s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]s/ca.pem}}
authorization: {mode: Webhook}
healthzPort: 0
cgroupDriver: cgroupfs
cgroupRoot: /cupola-kube-%[3]d
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
makeIPTablesUtilChains: false
resolvConf: %[1]s/resolv.conf
podLogsDir: %[1]s/podlogs
volumePluginDir: %[1]s/volumeplugins
oomScoreAdj: 0
serializeImagePulls: false
imagePullCredentialsVerificationPolicy: NeverVerify
evictionHard: {memory.available: 100Mi, nodefs.available: "1%%", imagefs.available: "1%%"}
imageGCHighThresholdPercent: 100
`

// containerdConfig has: directory, image of pods' sandboxes. A sandbox may not have
// its usual oom_score_adj where root lacks CAP_SYS_RESOURCE.
const containerdConfig = `version = 2
root = "%[1]s/containerd"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
address = "%[1]s/containerd.sock"
[ttrpc]
address = "%[1]s/containerd.sock.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "%[2]s"
restrict_oom_score_adj = true
disable_apparmor = true
disable_hugetlb_controller = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "%[1]s/cni"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "%[1]s/registries"
`

// podNetwork has the number of a node: its pods are on a bridge, behind the link to the host.
const podNetwork = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.177.%[1]d.0/24", "rangeStart": "10.177.%[1]d.10"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`

// Node is a control plane with a node whose pods are processes.
type Node struct {
	*Plane

	number int
	zone   string
}

// StartNode starts a control plane and a node in the zone z1, which end with the test and leave
// nothing behind. Processes of this machine reach the node's pods at their
// addresses, and pods reach what listens at the address Host; they reach nothing
// beyond this machine. It skips the test as Start does, and without root.
func StartNode(t testing.TB) *Node {
	t.Helper()
	n := newNode(t)
	p := n.Plane
	p.control(n.Host(), n.services())
	p.open()
	p.furnish()
	n.configure()
	n.boot()
	p.Until("the node is ready", n.ready)
	return n
}

// Join adds a node in another zone to the cluster. Its pods reach this machine, and not those of other nodes.
func (n *Node) Join(zone string) *Node {
	n.t.Helper()
	p := *n.Plane
	p.dir = n.t.TempDir()
	other := &Node{Plane: &p, zone: zone}
	other.link()
	for _, name := range []string{"kubeconfig", "ca.pem"} {
		text, err := os.ReadFile(filepath.Join(n.dir, name))
		if err != nil {
			n.t.Fatal(err)
		}
		other.write(name, string(text))
	}
	other.configure()
	other.boot()
	p.Until("the node in "+zone+" is ready", other.ready)
	return other
}

// newNode is one that only has its link to this machine.
func newNode(t testing.TB) *Node {
	t.Helper()
	p := newPlane(t)
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	n := &Node{Plane: p, zone: "z1"}
	n.link()
	return n
}

// Hide takes the route to the pods away: processes of this machine reach none at its address any longer, and pods reach nothing here.
// (Without any route, the machine's default one would lead to who knows whom.)
func (n *Node) Hide() {
	n.t.Helper()
	pods := fmt.Sprintf("10.177.%d.0/24", n.number)
	for _, args := range [][]string{
		{"route", "add", n.address(), "via", fmt.Sprintf("10.178.%d.2", n.number)}, // of the kubelet, for the API server
		{"route", "replace", "unreachable", pods},
	} {
		if out, err := n.ip(args...); err != nil {
			n.t.Fatal(out)
		}
	}
	n.t.Cleanup(func() {
		//nolint:usetesting // the test's context has ended
		if out, err := exec.CommandContext(context.Background(), "ip", "route", "del", "unreachable", pods).CombinedOutput(); err != nil {
			n.t.Errorf("%v: %s", err, out)
		}
	})
}

// Host is the address of this machine, as pods see it.
func (n *Node) Host() string { return fmt.Sprintf("10.178.%d.1", n.number) }

// services begins the addresses of Services.
func (n *Node) services() string { return fmt.Sprintf("10.179.%d", n.number) }

func (n *Node) address() string { return fmt.Sprintf("10.177.%d.1", n.number) }

// link makes the pair of interfaces between this machine and the node. Its name is
// the claim on the number, so that tests may run side by side.
func (n *Node) link() {
	n.t.Helper()
	for n.number = 1; ; n.number++ {
		out, err := n.ip("link", "add", n.linkName(), "type", "veth", "peer", "name", n.linkName()+"n")
		if err == nil {
			break
		}
		if !strings.Contains(out, "exists") || n.number == maxNodes {
			n.t.Fatal(out)
		}
	}
	n.t.Cleanup(func() {
		//nolint:usetesting // the test's context has ended
		_ = exec.CommandContext(context.Background(), "ip", "link", "del", n.linkName()).Run() // the kernel deletes it with the node's network
	})
	for _, args := range [][]string{
		{"addr", "add", n.Host() + "/30", "dev", n.linkName()},
		{"link", "set", n.linkName(), "up"},
		{"route", "replace", fmt.Sprintf("10.177.%d.0/24", n.number), "via", fmt.Sprintf("10.178.%d.2", n.number), "dev", n.linkName()},
	} {
		if out, err := n.ip(args...); err != nil {
			n.t.Fatal(out)
		}
	}
}

// name is the node's in the cluster.
func (n *Node) name() string { return "node-" + n.zone }

func (n *Node) linkName() string { return "cupolakube" + strconv.Itoa(n.number) }

func (n *Node) ip(args ...string) (string, error) {
	out, err := exec.CommandContext(n.t.Context(), "ip", args...).CombinedOutput()
	return fmt.Sprintf("ip %s: %s", strings.Join(args, " "), out), err
}

// configure writes what the node's programs read.
func (n *Node) configure() {
	n.t.Helper()
	for _, dir := range []string{"cni", "images", "registries"} {
		if err := os.Mkdir(filepath.Join(n.dir, dir), 0o700); err != nil {
			n.t.Fatal(err)
		}
	}
	n.write("node.sh", nodeScript)
	n.write("kubelet.yaml", fmt.Sprintf(kubeletConfig, n.dir, n.address(), n.number))
	n.write("containerd.toml", fmt.Sprintf(containerdConfig, n.dir, PodImage))
	n.write("cni/pods.conflist", fmt.Sprintf(podNetwork, n.number))
	n.write("resolv.conf", "nameserver "+n.Host()+"\n") // an empty one would be the machine's
	tag, err := name.NewTag(PodImage)
	if err == nil {
		err = tarball.WriteToFile(n.dir+"/images/pod", tag, podImage(n.t, n.bin+".pod", "/pod", nil))
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// podImage is an image of one static program, and the arguments that it has by default.
func podImage(t testing.TB, program, at string, args []string) v1.Image {
	t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err = errors.Join(w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(at, "/"), Mode: 0o755, Size: int64(len(text))}), second(w.Write(text)), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	return layerImage(t, archive.Bytes(), v1.Config{Entrypoint: []string{at}, Cmd: args})
}

// layerImage is an image of one layer, a tar.
func layerImage(t testing.TB, archive []byte, config v1.Config) v1.Image {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", Config: config})
	if err == nil {
		image, err = mutate.AppendLayers(image, layer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func second[T any](_ T, err error) error { return err }

// boot starts the node in its own namespaces. They end with the script, which is
// their first process, and it ends with the test.
func (n *Node) boot() {
	n.t.Helper()
	host, err := os.Open("/proc/self/ns/net")
	if err != nil {
		n.t.Fatal(err)
	}
	defer host.Close()
	n.t.Cleanup(n.removeCgroups)
	//nolint:gosec // the test's own script
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"bash", n.dir+"/node.sh", n.dir, strconv.Itoa(n.number), n.bin, n.zone)
	cmd.ExtraFiles = []*os.File{host}
	n.run("node-"+n.zone, cmd)
}

// removeCgroups removes the node's cgroups once its processes are gone.
func (n *Node) removeCgroups() {
	n.wait("the node has ended", func() bool {
		for _, dir := range n.cgroups() {
			if err := removeCgroup(dir); err != nil {
				return false
			}
		}
		return true
	})
}

// cgroups are those of the node, one of each hierarchy.
func (n *Node) cgroups() []string {
	v2, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/cupola-kube-%d", n.number))
	v1, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/cupola-kube-%d", n.number))
	return append(v2, v1...)
}

// removeCgroup removes a cgroup and those below it.
func removeCgroup(dir string) error {
	children, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, c := range children {
		if c.IsDir() {
			err = errors.Join(err, removeCgroup(filepath.Join(dir, c.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// ready reports whether the node takes pods, and their tokens' account is there.
func (n *Node) ready() bool {
	if len(n.List("v1", "ServiceAccount")) == 0 {
		return false
	}
	return slices.ContainsFunc(n.List("v1", "Node"), func(o kube.Object) bool { return o.Name() == n.name() && Ready(o) })
}

// Ready reports whether a pod, or a node, is ready.
func Ready(o kube.Object) bool {
	return slices.ContainsFunc(o.Items("status", "conditions"), func(c kube.Object) bool { return c.Text("type") == "Ready" && c.Text("status") == "True" })
}

// Ask is what a pod answers to a request at its port 8080.
func (n *Node) Ask(pod kube.Object, path string) (string, error) {
	_, body, err := get(n.t.Context(), http.DefaultTransport, "http://"+pod.Text("status", "podIP")+":8080"+path, http.Header{})
	return body, err
}

// PushPod pushes the image of test/kube/pod with arguments to a registry of the node.
func (n *Node) PushPod(image string, args ...string) {
	n.t.Helper()
	n.push(image, podImage(n.t, n.bin+".pod", "/pod", args))
}

// PushProgram pushes an image that has a program at a path, and nothing else, to a registry of the node.
func (n *Node) PushProgram(image, program, at string) {
	n.t.Helper()
	n.push(image, podImage(n.t, program, at, nil))
}

func (n *Node) push(image string, content v1.Image) {
	n.t.Helper()
	tag, err := name.NewTag(image, name.Insecure)
	if err == nil {
		err = remote.Write(tag, content, remote.WithContext(n.t.Context()))
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// PushLayer pushes an image of one layer to a registry of the node.
func (n *Node) PushLayer(image string, layer []byte, config v1.Config) {
	n.t.Helper()
	n.push(image, layerImage(n.t, layer, config))
}

// Import gives the node an image of an archive.
func (n *Node) Import(archive string) {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), "ctr", "-a", n.dir+"/containerd.sock", "-n", "k8s.io", "images", "import", archive).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%v\n%s", err, out)
	}
}

// In is the same node, for what is in another namespace.
func (n *Node) In(namespace string) *Node {
	p := *n.Plane
	p.within = namespace
	return &Node{Plane: &p, number: n.number, zone: n.zone}
}

// Trust makes the node trust a registry's CA; file is its certificate.
func (n *Node) Trust(registry, file string) {
	n.t.Helper()
	ca, err := os.ReadFile(file)
	if err == nil {
		err = os.Mkdir(filepath.Join(n.dir, "registries", registry), 0o700)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	dir := filepath.Join("registries", registry)
	n.write(dir+"/ca.pem", string(ca))
	n.write(dir+"/hosts.toml", fmt.Sprintf("server = %[1]q\n[host.%[1]q]\ncapabilities = [\"pull\", \"resolve\"]\nca = %[2]q\n", "https://"+registry, filepath.Join(n.dir, dir, "ca.pem")))
}

// Registry starts a registry from which the node pulls, without TLS, and returns
// its host and port. Everybody may push to it.
func (n *Node) Registry() string {
	n.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(n.t.Context(), "tcp", n.Host()+":0")
	if err != nil {
		n.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	_ = server.Listener.Close()
	server.Listener = l
	server.Start()
	n.t.Cleanup(server.Close)
	n.PullsPlain(l.Addr().String())
	return l.Addr().String()
}

// Forward lets the node pull without TLS from a registry that listens on this machine's loopback, and returns the address at which it
// does, and this machine as well.
func (n *Node) Forward(registry string) (address string) {
	n.t.Helper()
	_, port, err := net.SplitHostPort(registry)
	if err != nil {
		n.t.Fatal(err)
	}
	address = net.JoinHostPort(n.Host(), port)
	loopback.Forward(n.t, address, func() string { return registry })
	n.PullsPlain(address)
	return address
}

// PullsPlain lets the node pull from a registry without TLS.
func (n *Node) PullsPlain(registry string) {
	n.t.Helper()
	dir := filepath.Join("registries", registry)
	if err := os.Mkdir(filepath.Join(n.dir, dir), 0o700); err != nil {
		n.t.Fatal(err)
	}
	n.write(dir+"/hosts.toml", fmt.Sprintf("server = %[1]q\n[host.%[1]q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+registry))
}
