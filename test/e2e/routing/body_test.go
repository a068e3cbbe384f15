package routing

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestAnswerBeforeTheEndOfABody makes an app answer while its client still sends, by HTTP/1.1 and by HTTP/2: neither waits for the
// other, and nothing breaks off.
func TestAnswerBeforeTheEndOfABody(t *testing.T) {
	t.Parallel()
	secure := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--https", secure)
	d.PushProbe("probe")
	//nolint:gosec // the certificate is not the subject
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	half := strings.Repeat("x", 64<<10)
	for at, protocol := range map[string]string{"http://" + d.Addr: "HTTP/1.1", "https://" + secure: "HTTP/2.0"} {
		body, sent := io.Pipe()
		go func() { _, _ = io.WriteString(sent, half) }()
		giveUp := time.AfterFunc(20*time.Second, func() { _ = sent.CloseWithError(errors.New("no answer begins")) })
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/early", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Host, req.ContentLength = "probe.localhost", 2*int64(len(half))
		res, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", protocol, err)
		}
		giveUp.Stop()
		defer res.Body.Close()
		answer := bufio.NewReader(res.Body)
		if line, err := answer.ReadString('\n'); line != "begun\n" || res.Proto != protocol {
			t.Fatalf("%s: got %s %q, %v", protocol, res.Proto, line, err)
		}
		go func() {
			_, _ = io.WriteString(sent, half)
			_ = sent.Close()
		}()
		if rest, err := io.ReadAll(answer); string(rest) != fmt.Sprintln(2*len(half), nil) || err != nil {
			t.Errorf("%s: got %q, %v", protocol, rest, err)
		}
	}
}
