// Package kubetest is a real Kubernetes control plane for tests, whose kubelet
// only pretends: the program of test/kube, once for each part.
package kubetest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"cupola/test/loopback"
)

// namespace is that of the kubeconfig.
const namespace = "nats"

// Patience is how long a control plane may take for anything, on a machine that
// has other things to do.
const Patience = 3 * time.Minute

// Plane is a control plane, with a node in each of the zones z1 and eu-2, the
// StorageClass fast, which is the default, and the namespace.
type Plane struct {
	Kubeconfig string // a file; the context is its current one

	t      testing.TB
	bin    string
	dir    string
	client dynamic.Interface
}

// Start starts a control plane, which listens on loopback alone and ends with the
// test. The test is skipped where CUPOLA_KUBE_BIN names no program.
func Start(t testing.TB) *Plane {
	t.Helper()
	p := &Plane{t: t, bin: os.Getenv("CUPOLA_KUBE_BIN")}
	if p.bin == "" {
		t.Skip("needs CUPOLA_KUBE_BIN: make test-kube builds a control plane and names it")
	}
	p.dir = t.TempDir()
	ports := loopback.FreePorts(t, 3)
	store, peer, port := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1]), strconv.Itoa(ports[2])
	p.write("tokens", "token,admin,admin,system:masters\n")
	p.write("key.pem", serviceKey(t))
	p.Kubeconfig = p.write("kubeconfig", fmt.Sprintf(kubeconfig, port, namespace))
	p.start("etcd", p.dir+"/etcd", store, peer)
	p.start("apiserver", "--etcd-servers", store, "--bind-address=127.0.0.1", "--secure-port", port, "--cert-dir", p.dir+"/certs",
		"--token-auth-file", p.dir+"/tokens", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file", p.dir+"/key.pem", "--service-account-signing-key-file", p.dir+"/key.pem")
	p.Until("the API server is ready", func() bool { return p.healthy("https://127.0.0.1:" + port + "/readyz") })
	p.start("controllers", p.Kubeconfig)
	p.start("scheduler", "--kubeconfig", p.Kubeconfig, "--leader-elect=false", "--secure-port=0")
	p.start("kubelet", p.Kubeconfig)
	p.open()
	p.furnish()
	return p
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:%s", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: token}}]
contexts: [{name: test, context: {cluster: test, user: admin, namespace: %s}}]
current-context: test
`

func (p *Plane) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *Plane) start(part string, args ...string) {
	p.t.Helper()
	log, err := os.Create(filepath.Join(p.dir, part+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), p.bin, slices.Concat([]string{part}, args)...)
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

func (p *Plane) healthy(url string) bool {
	own := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a certificate of a minute ago, on loopback
	client := &http.Client{Transport: own, Timeout: time.Second}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, url, nil)
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

func (p *Plane) open() {
	p.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err == nil {
		p.client, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Until waits until something is so.
func (p *Plane) Until(what string, is func() bool) {
	p.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !is(); <-tick.C {
		if time.Now().After(end) {
			p.t.Fatalf("it did not come to this: %s", what)
		}
	}
}

func serviceKey(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
