package apply

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/websocket"
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

// Bounds of messages: sent, and received from a container at once.
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
	conn, err := c.upgrade(context.WithoutCancel(ctx), u)
	if err != nil {
		return nil, fmt.Errorf("enter pod %s: %w", pod, err)
	}
	conn.PayloadType, conn.MaxPayloadBytes = websocket.BinaryFrame, maxReceived
	s := &session{conn: conn, pod: pod, ended: make(chan struct{})}
	var out *io.PipeWriter
	s.out, out = io.Pipe()
	fault.Go("exec", func() {
		defer close(s.ended)
		_ = out.CloseWithError(fault.Guard("exec", func() error { return s.receive(out) }))
	})
	return s, nil
}

// upgradeTime bounds how long the API server may take to become a websocket.
const upgradeTime = 20 * time.Second

// upgrade opens a websocket. Its handshake is a request of the cluster's own client, which knows credentials and proxies.
func (c *Cluster) upgrade(ctx context.Context, u *url.URL) (*websocket.Conn, error) {
	here := &url.URL{Scheme: "ws", Host: u.Host, Path: "/"} // carry asks for the right one
	config := &websocket.Config{Location: here, Origin: here, Version: websocket.ProtocolVersionHybi13, Protocol: []string{execProtocol}}
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	refused := make(chan error, 1)
	fault.Go("exec", func() {
		defer cancel()
		defer theirs.Close()
		refused <- fault.Guard("exec", func() error { return c.carry(ctx, u, theirs) })
	})
	late := time.AfterFunc(upgradeTime, cancel)
	conn, err := websocket.NewClient(config, ours)
	if !late.Stop() || err != nil {
		_ = ours.Close()
		cancel()
		return nil, cmp.Or(<-refused, err)
	}
	return conn, nil
}

// carry makes a request of what comes over a connection, and then carries bytes between it and the API server.
func (c *Cluster) carry(ctx context.Context, u *url.URL, conn net.Conn) error {
	from := bufio.NewReader(conn)
	handshake, err := http.ReadRequest(from)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header = handshake.Header
	req.Header.Del("Origin") // of browsers
	res, err := c.exec.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	stream, ok := res.Body.(io.ReadWriteCloser)
	if res.StatusCode != http.StatusSwitchingProtocols || !ok {
		return refusal(res)
	}
	if got := res.Header.Get("Sec-Websocket-Protocol"); got != execProtocol {
		return fmt.Errorf("its cluster does not speak %s, which Kubernetes has since 1.30", execProtocol)
	}
	fault.Go("exec", func() {
		_, _ = io.Copy(stream, from)
		_ = stream.Close()
	})
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\n", res.Status); err != nil {
		return err
	}
	if err := errors.Join(res.Header.Write(conn), second(io.WriteString(conn, "\r\n"))); err != nil {
		return err
	}
	_, err = io.Copy(conn, stream)
	return err
}

func second[T any](_ T, err error) error { return err }

// refusal is what an API server says that becomes no websocket.
func refusal(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxWords))
	var status struct{ Message string }
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return errors.New(status.Message)
	}
	return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(text)))
}

// session is a program that Exec runs.
type session struct {
	conn  *websocket.Conn
	pod   string
	out   *io.PipeReader
	ended chan struct{}
}

// receive writes what the program says to out, until it ends; io.EOF is a good end.
func (s *session) receive(out io.Writer) error {
	var words []byte
	for {
		var message []byte
		if err := websocket.Message.Receive(s.conn, &message); err != nil {
			return fmt.Errorf("pod %s: %w", s.pod, cutOff(err))
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

// cutOff is the end of a connection before that of its program.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
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
	return websocket.Message.Send(s.conn, append([]byte{channel}, body...))
}

// sessionGrace is how long a program has to end when its input has.
const sessionGrace = 8 * time.Second

// Close ends the session.
func (s *session) Close() error {
	_ = s.out.Close()
	_ = s.conn.SetDeadline(time.Now().Add(sessionGrace))
	if s.send(channelClose, []byte{channelInput}) == nil {
		<-s.ended // by the deadline, at last
	}
	return s.conn.Close()
}
