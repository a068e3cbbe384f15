// Package kubetest is a real Kubernetes for tests: a control plane, which is the
// program of test/kube, once for each part, with nodes that only pretend to run
// pods, or with a real one: a kubelet, containerd, runc and CNI.
package kubetest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
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

// Plane is a control plane with the StorageClass fast, which is the default, and
// the namespace of its kubeconfig.
type Plane struct {
	Kubeconfig string // a file; the context is its current one

	t       testing.TB
	bin     string
	dir     string
	server  string // the API server's URL
	token   string
	limited string // the token of accountUser
	within  string // the namespace of what is made and listed
	trust   *x509.CertPool
	client  dynamic.Interface
	parts   []part
}

// part is a process of the control plane or of a node.
type part struct {
	name    string
	process *os.Process
	ended   <-chan struct{}
}

// Start starts a control plane with a node in each of the zones z1 and eu-2, on
// which pods have no processes. It listens on loopback alone and ends with the
// test. The test is skipped where CUPOLA_KUBE_BIN names no program.
func Start(t testing.TB) *Plane {
	t.Helper()
	p := newPlane(t)
	p.control("127.0.0.1", "10.96.0")
	p.start("pretend", p.Kubeconfig)
	p.open()
	p.furnish()
	p.pretendNodes()
	return p
}

func newPlane(t testing.TB) *Plane {
	t.Helper()
	p := &Plane{t: t, bin: os.Getenv("CUPOLA_KUBE_BIN"), token: rand.Text(), limited: rand.Text(), within: namespace}
	if p.bin == "" {
		t.Skip("needs CUPOLA_KUBE_BIN: make test-kube builds a control plane and names it")
	}
	p.dir = t.TempDir()
	return p
}

// control starts the control plane, whose API server listens at the address ip. The addresses of Services begin with services.
func (p *Plane) control(ip, services string) {
	p.t.Helper()
	p.certify(net.ParseIP(ip), net.ParseIP(services+".1")) // the Service of the API server has the first address
	ports := loopback.FreePorts(p.t, 3)
	store, peer, port := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1]), strconv.Itoa(ports[2])
	p.write("tokens", p.token+",admin,admin,system:masters\n"+p.limited+","+accountUser+",account,system:authenticated\n")
	p.write("audit.yaml", fmt.Sprintf(auditPolicy, accountUser))
	p.write("service-accounts.pem", serviceKey(p.t))
	p.server = "https://" + net.JoinHostPort(ip, port)
	p.Kubeconfig = p.write("kubeconfig", fmt.Sprintf(kubeconfig, p.server, p.dir+"/ca.pem", p.token, namespace))
	p.start("etcd", p.dir+"/etcd", store, peer)
	p.start("apiserver", "--etcd-servers", store, "--bind-address", ip, "--secure-port", port, "--tls-cert-file", p.dir+"/server.pem", "--tls-private-key-file", p.dir+"/server.key",
		"--kubelet-client-certificate", p.dir+"/client.pem", "--kubelet-client-key", p.dir+"/client.key", "--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged", "--token-auth-file", p.dir+"/tokens", "--authorization-mode=RBAC", "--service-cluster-ip-range="+services+".0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file", p.dir+"/service-accounts.pem", "--service-account-signing-key-file", p.dir+"/service-accounts.pem",
		"--audit-policy-file", p.dir+"/audit.yaml", "--audit-log-path", p.dir+"/audit.log")
	p.Until("the API server is ready", p.healthy)
	p.start("controllers", p.Kubeconfig, p.dir+"/ca.pem")
	p.start("scheduler", "--kubeconfig", p.Kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000")
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "%s", certificate-authority: "%s"}}]
users: [{name: admin, user: {token: %s}}]
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

// start starts a part of the control plane.
func (p *Plane) start(part string, args ...string) {
	p.t.Helper()
	p.run(part, exec.CommandContext(context.Background(), p.bin, slices.Concat([]string{part}, args)...))
}

// run starts a command that ends with the test. The end of its log is shown if the test fails.
func (p *Plane) run(name string, cmd *exec.Cmd) {
	p.t.Helper()
	log, err := os.Create(filepath.Join(p.dir, name+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	p.parts = append(p.parts, part{name, cmd.Process, ended})
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = log.Close()
		if text, _ := os.ReadFile(log.Name()); p.t.Failed() {
			p.t.Logf("%s: …%s", name, text[max(0, len(text)-2000):])
		}
	})
}

// Pause stops a part where it is, as a machine does that no longer answers. It goes on with
// resume.
func (p *Plane) Pause(name string) (resume func()) {
	p.t.Helper()
	for _, part := range p.parts {
		if part.name != name {
			continue
		}
		if err := part.process.Signal(syscall.SIGSTOP); err != nil {
			p.t.Fatal(err)
		}
		return func() { _ = part.process.Signal(syscall.SIGCONT) }
	}
	p.t.Fatalf("there is no part %s", name)
	return nil
}

// Get is the API server's answer to a path.
func (p *Plane) Get(path string) (status int, body string, err error) {
	own := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.trust}}
	defer own.CloseIdleConnections()
	return get(p.t.Context(), own, p.server+path, http.Header{"Authorization": {"Bearer " + p.token}})
}

func get(ctx context.Context, transport http.RoundTripper, url string, header http.Header) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header = header
	res, err := (&http.Client{Transport: transport, Timeout: Patience}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func (p *Plane) healthy() bool {
	status, _, err := p.Get("/readyz")
	return err == nil && status == http.StatusOK
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

// Until waits until something is so. No part may end meanwhile.
func (p *Plane) Until(what string, is func() bool) {
	p.t.Helper()
	p.wait(what, func() bool {
		for _, part := range p.parts {
			select {
			case <-part.ended:
				p.t.Fatalf("%s has ended before this: %s", part.name, what)
			default:
			}
		}
		return is()
	})
}

func (p *Plane) wait(what string, is func() bool) {
	p.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !is(); <-tick.C {
		if time.Now().After(end) {
			p.t.Fatalf("it did not come to this: %s", what)
		}
	}
}
