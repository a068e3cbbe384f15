package apply

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A pod reaches its cluster by the address in its environment and by its service account.
func TestInCluster(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization") + " " + r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "SecretList", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}]}`))
	}))
	defer server.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"token": "the-token", "namespace": "apps\n", "ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Open(Config{InCluster: true, accountDir: dir}); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Errorf("got %v outside of a cluster", err)
	}
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(at.Host)
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	for namespace, want := range map[string]string{"": "apps", "other": "other"} {
		c, err := Open(Config{InCluster: true, Namespace: namespace, accountDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if names, err := c.Names(t.Context(), "Secret", ""); err != nil || len(names) != 1 {
			t.Errorf("got %v, %v", names, err)
		}
		if got := <-asked; got != "Bearer the-token /api/v1/namespaces/"+want+"/secrets" {
			t.Errorf("got the request %q", got)
		}
	}
}
