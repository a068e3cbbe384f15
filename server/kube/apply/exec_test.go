package apply

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// shell pretends to be an API server whose containers have one program. It answers what it is sent, until its input ends, with a
// status; its standard error goes before that.
func shell(t *testing.T, status, words string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/namespaces/nats/pods/a/exec" || q.Get("container") != "process" || strings.Join(q["command"], " ") != "sh -c x" {
			http.Error(w, `{"message":"asked for `+r.URL.String()+`"}`, http.StatusBadRequest)
			return
		}
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{execProtocol}})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		send := func(channel byte, text string) {
			_ = conn.Write(r.Context(), websocket.MessageBinary, append([]byte{channel}, text...))
		}
		send(channelOutput, "")
		for {
			_, message, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			if message[0] == channelClose {
				break
			}
			send(channelOutput, string(message[1:]))
		}
		send(channelErrors, words)
		send(channelStatus, status)
	})
}

func TestExec(t *testing.T) {
	for _, c := range []struct{ status, words, want string }{
		{`{"status":"Success"}`, "a warning", ""},
		{`{"status":"Failure","message":"command terminated with exit code 7"}`, "", "pod a: command terminated with exit code 7"},
		{`{"status":"Failure","message":"command terminated with exit code 7"}`, "no such user\n", "pod a: no such user"},
		{`{`, "", "read the status"},
	} {
		s, err := openAt(t, shell(t, c.status, c.words)).Exec(t.Context(), "a", "process", "sh", "-c", "x")
		if err != nil {
			t.Fatal(err)
		}
		sent := bytes.Repeat([]byte("0123456789"), maxSent/5)
		go func() {
			_, _ = s.Write(sent)
			_ = s.(*session).send(channelClose, []byte{channelInput})
		}()
		got, err := io.ReadAll(s)
		if !bytes.Equal(got, sent) || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %d bytes, %v; want %d, %q", len(got), err, len(sent), c.want)
		}
		_ = s.Close()
	}
}

// TestExecEnds closes a session whose program has more to say than anybody reads.
func TestExecEnds(t *testing.T) {
	s, err := openAt(t, shell(t, `{"status":"Success"}`, "")).Exec(t.Context(), "a", "process", "sh", "-c", "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(make([]byte, maxSent)); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	<-s.(*session).ended
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("got no error from a session that was closed")
	}
}

func TestExecRefused(t *testing.T) {
	for _, c := range []struct {
		answer http.HandlerFunc
		want   string
	}{
		{func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"pods \"a\" is forbidden: cannot create resource \"pods/exec\""}`)
		}, "enter pod a: pods \"a\" is forbidden"},
		{func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone away", http.StatusBadGateway) }, "502 Bad Gateway: gone away"},
		{func(w http.ResponseWriter, r *http.Request) {
			if conn, err := websocket.Accept(w, r, nil); err == nil {
				_, _, _ = conn.Read(context.WithoutCancel(r.Context()))
			}
		}, "does not speak v5.channel.k8s.io"},
	} {
		if _, err := openAt(t, c.answer).Exec(t.Context(), "a", "process", "x"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v; want %q", err, c.want)
		}
	}
}
