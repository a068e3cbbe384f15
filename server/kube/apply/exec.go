package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
	"k8s.io/client-go/rest"

	"cupola/runtime/fault"
)

// The protocol of remote commands by a websocket (k8s.io/apimachinery/pkg/util/remotecommand): each message begins with its channel.
// client-go's own client of it would add 4 MB of types to the binary.
const (
	execProtocol = "v5.channel.k8s.io"

	channelInput  = 0
	channelOutput = 1
	channelErrors = 2
	channelStatus = 3
	channelClose  = 255 // of the channel that is the message's second byte
)

// Bounds of messages: of ours, and of what a container says at once.
const (
	maxSent     = 16 << 10
	maxReceived = 4 << 20
	maxWords    = 1 << 10
)

// openExec makes the client of websockets: HTTP/2 has none.
func (c *Cluster) openExec(of *rest.Config) (err error) {
	of = rest.CopyConfig(of)
	of.NextProtos = []string{"http/1.1"}
	c.exec, err = rest.HTTPClientFor(of)
	return err
}

// Exec runs a program in a container of a pod, and returns its standard input and output. The error of Read says how it ended, if
// not well, and what it wrote to its standard error then. Close ends its input and waits a while for it to end.
func (c *Cluster) Exec(ctx context.Context, pod, container string, argv ...string) (io.ReadWriteCloser, error) {
	u := c.base.JoinPath("api/v1/namespaces", c.Namespace, "pods", pod, "exec")
	u.RawQuery = url.Values{"container": {container}, "command": argv, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}.Encode()
	//nolint:bodyclose // the library's: "You never need to close resp.Body yourself"
	conn, res, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{HTTPClient: c.exec, Subprotocols: []string{execProtocol}})
	if err != nil {
		return nil, fmt.Errorf("enter pod %s: %w", pod, refusal(res, err))
	}
	if got := conn.Subprotocol(); got != execProtocol {
		_ = conn.CloseNow()
		return nil, fmt.Errorf("enter pod %s: its cluster does not speak %s, which Kubernetes has since 1.30", pod, execProtocol)
	}
	conn.SetReadLimit(maxReceived)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{conn: conn, ctx: ctx, cancel: cancel, pod: pod, ended: make(chan struct{})}
	var out *io.PipeWriter
	s.out, out = io.Pipe()
	fault.Go("exec", func() {
		defer close(s.ended)
		_ = out.CloseWithError(fault.Guard("exec", func() error { return s.receive(out) }))
	})
	return s, nil
}

// refusal is what an API server says that takes no websocket.
func refusal(res *http.Response, err error) error {
	if res == nil || res.Body == nil {
		return err
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxWords))
	var status struct{ Message string }
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return errors.New(status.Message)
	}
	return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(text)))
}

// session is a program that Exec runs.
type session struct {
	conn   *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	pod    string
	out    *io.PipeReader
	ended  chan struct{}
}

// receive writes what the program says to out, until it ends; io.EOF is a good end.
func (s *session) receive(out io.Writer) error {
	var words []byte
	for {
		_, message, err := s.conn.Read(s.ctx)
		if err != nil {
			return fmt.Errorf("pod %s: %w", s.pod, err)
		}
		if len(message) < 2 {
			continue // each channel begins with nothing
		}
		switch body := message[1:]; message[0] {
		case channelOutput:
			_, _ = out.Write(body) // who closed the session reads no more
		case channelErrors:
			words = append(words, body[:min(len(body), maxWords-len(words))]...)
		case channelStatus:
			return s.end(body, words)
		}
	}
}

// end is how the program ended.
func (s *session) end(status, words []byte) error {
	var said struct{ Status, Message string }
	if err := json.Unmarshal(status, &said); err != nil {
		return fmt.Errorf("pod %s: read the status of a command: %w", s.pod, err)
	}
	if said.Status == "Success" {
		return io.EOF
	}
	return fmt.Errorf("pod %s: %s", s.pod, cmp.Or(strings.TrimSpace(string(words)), said.Message))
}

func (s *session) Read(p []byte) (int, error) { return s.out.Read(p) }

func (s *session) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), maxSent)]
		if err := s.send(channelInput, part); err != nil {
			return n, err
		}
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

func (s *session) send(channel byte, body []byte) error {
	return s.conn.Write(s.ctx, websocket.MessageBinary, append([]byte{channel}, body...))
}

// sessionGrace is how long a program has to end when its input has.
const sessionGrace = 8 * time.Second

// Close ends the session.
func (s *session) Close() error {
	defer s.cancel()
	_ = s.out.Close()
	late := time.NewTimer(sessionGrace)
	defer late.Stop()
	if s.send(channelClose, []byte{channelInput}) == nil {
		select {
		case <-s.ended:
		case <-late.C:
		}
	}
	return s.conn.CloseNow()
}
