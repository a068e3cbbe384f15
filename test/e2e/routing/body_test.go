package routing

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestLargeBodies has an app send long bodies back, many on a connection, by HTTP/1.1 and by HTTP/2: none breaks off.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	secure := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--https", secure)
	d.PushProbe("probe")
	sent := make([]byte, 1<<20)
	for n := range sent {
		sent[n] = byte(rand.Uint32())
	}
	//nolint:gosec // the certificate is not the subject
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for at, protocol := range map[string]string{"http://" + d.Addr: "HTTP/1.1", "https://" + secure: "HTTP/2.0"} {
		for n := range 40 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/back", bytes.NewReader(sent))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "probe.localhost"
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			if closed := res.Body.Close(); err != nil || closed != nil || res.Proto != protocol || !bytes.Equal(got, sent) {
				t.Errorf("%s, body %d: got %s %s, %d bytes, %v", protocol, n, res.Proto, res.Status, len(got), err)
			}
		}
	}
}
