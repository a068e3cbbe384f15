package apply

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cupola/server/kube"
)

// plane is a real control plane whose kubelet only pretends: the program of
// test/kube, once for each part.
type plane struct {
	t      *testing.T
	bin    string
	dir    string
	config string // the kubeconfig
}

// startPlane starts one. It listens on loopback alone and ends with the test.
func startPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{t: t, bin: os.Getenv("CUPOLA_KUBE_BIN"), dir: t.TempDir()}
	if p.bin == "" {
		t.Skip("needs CUPOLA_KUBE_BIN: make test-kube builds a control plane and names it")
	}
	p.config = filepath.Join(p.dir, "kubeconfig")
	store, peer, port := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t), freePort(t)
	p.write("tokens", "token,admin,admin,system:masters\n")
	p.write("key.pem", serviceKey(t))
	p.write("kubeconfig", fmt.Sprintf(kubeconfig, port))
	p.start("etcd", p.dir+"/etcd", store, peer)
	p.start("apiserver", "--etcd-servers", store, "--bind-address=127.0.0.1", "--secure-port", port, "--cert-dir", p.dir+"/certs",
		"--token-auth-file", p.dir+"/tokens", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file", p.dir+"/key.pem", "--service-account-signing-key-file", p.dir+"/key.pem")
	p.until("the API server is ready", func() bool { return p.healthy("https://127.0.0.1:" + port + "/readyz") })
	p.start("controllers", p.config)
	p.start("scheduler", "--kubeconfig", p.config, "--leader-elect=false", "--secure-port=0")
	p.start("kubelet", p.config)
	return p
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:%s", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: token}}]
contexts: [{name: test, context: {cluster: test, user: admin, namespace: nats}}]
current-context: test
`

func (p *plane) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *plane) start(part string, args ...string) {
	p.t.Helper()
	log, err := os.Create(filepath.Join(p.dir, part+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(p.bin, slices.Concat([]string{part}, args)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if text, _ := os.ReadFile(log.Name()); p.t.Failed() {
			p.t.Logf("%s: …%s", part, text[max(0, len(text)-2000):])
		}
	})
}

func (p *plane) healthy(url string) bool {
	client := &http.Client{Transport: insecure(), Timeout: time.Second}
	req, err := http.NewRequestWithContext(p.t.Context(), "GET", url, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer token")
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// patience is how long a control plane may take for anything, on a machine that
// has other things to do.
const patience = 3 * time.Minute

func (p *plane) until(what string, is func() bool) {
	p.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(end) {
			p.t.Fatalf("it did not come to this: %s", what)
		}
	}
}

// open is the cluster, with a node in each of two zones, the manifest's class of
// disks and the namespace of the tests. What it warns of fails the test.
func (p *plane) open() *Cluster {
	p.t.Helper()
	c, err := Open(Config{Kubeconfig: p.config, Context: "test", Warn: func(text string) { p.t.Errorf("the cluster warns: %s", text) }})
	if err != nil {
		p.t.Fatal(err)
	}
	p.create(c, "v1", "namespaces", "Namespace", "nats", nil)
	p.create(c, "storage.k8s.io/v1", "storageclasses", "StorageClass", "fast", map[string]any{"provisioner": "pretended"})
	room := map[string]any{"cpu": "8", "memory": "16Gi", "pods": "50", "ephemeral-storage": "100Gi"}
	for _, zone := range []string{"z1", "eu-2"} {
		p.create(c, "v1", "nodes", "Node", "node-"+zone, map[string]any{
			"metadata": map[string]any{"name": "node-" + zone, "labels": map[string]any{kube.DefaultZoneLabel: zone}},
			"status":   map[string]any{"allocatable": room, "capacity": room},
		})
	}
	return c
}

func (p *plane) create(c *Cluster, version, resource, kind, name string, rest map[string]any) {
	p.t.Helper()
	o := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}
	for key, value := range rest {
		o[key] = value
	}
	of, err := schema.ParseGroupVersion(version)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := c.client.Resource(of.WithResource(resource)).Namespace(kube.Object(o).Namespace()).Create(p.t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func serviceKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
