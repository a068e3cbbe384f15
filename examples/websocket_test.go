package examples

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func startEcho(t *testing.T) *process {
	t.Helper()
	return start(t, "websocket", "listening", "node", "server.js")
}

func dial(t *testing.T, p *process) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws://"+p.addr+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(2 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func TestEcho(t *testing.T) {
	t.Parallel()
	p := startEcho(t)
	conn := dial(t, p)
	tests := map[string]struct {
		kind    websocket.MessageType
		message []byte
	}{
		"empty":      {websocket.MessageText, nil},
		"text":       {websocket.MessageText, []byte("molten iron, 1200 °C")},
		"125 bytes":  {websocket.MessageBinary, bytes.Repeat([]byte{1}, 125)},
		"126 bytes":  {websocket.MessageBinary, bytes.Repeat([]byte{2}, 126)},
		"65535 byte": {websocket.MessageBinary, bytes.Repeat([]byte{3}, 65535)},
		"65536 byte": {websocket.MessageBinary, bytes.Repeat([]byte{4}, 65536)},
		"1 MiB":      {websocket.MessageBinary, bytes.Repeat([]byte("cupola!!"), 1<<17)},
	}
	for name, test := range tests {
		if err := conn.Write(t.Context(), test.kind, test.message); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kind, got, err := conn.Read(t.Context())
		if err != nil || kind != test.kind || !bytes.Equal(got, test.message) {
			t.Fatalf("%s: got %v of %d bytes (%v)", name, kind, len(got), err)
		}
	}
	ctx := conn.CloseRead(t.Context())
	if err := conn.Ping(ctx); err != nil {
		t.Errorf("ping: %v", err)
	}
	if err := conn.Close(websocket.StatusNormalClosure, "done"); err != nil {
		t.Errorf("close: %v", err)
	}
	p.stdout.await(t, "websocket closed with 1000 after 7 messages, 0 connected")
}

func TestEchoSaysGoodbye(t *testing.T) {
	t.Parallel()
	p := startEcho(t)
	conn := dial(t, p)
	p.terminate(t)
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("got %v; want status 1001", err)
	}
	if code := p.exitCode(t); code != 0 {
		t.Errorf("got exit code %d, %q", code, p.stderr.lines)
	}
}

func TestEchoRefusesHandshakes(t *testing.T) {
	t.Parallel()
	p := startEcho(t)
	good := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
	tests := map[string]struct {
		path, header, value string
		want                int
	}{
		"good":        {"/ws", "", "", 101},
		"other path":  {"/", "", "", 404},
		"old version": {"/ws", "Sec-Websocket-Version", "8", 426},
		"short key":   {"/ws", "Sec-Websocket-Key", "AAAA", 400},
		"other thing": {"/ws", "Upgrade", "h2c", 400},
	}
	for name, test := range tests {
		header := good.Clone()
		if test.header != "" {
			header.Set(test.header, test.value)
		}
		conn, res := shake(t, p, test.path, header)
		_ = conn.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: got %d; want %d", name, res.StatusCode, test.want)
		}
	}
	if got := p.fetch(t, "GET", "/ws", "*/*"); got.Status != http.StatusUpgradeRequired {
		t.Errorf("got %d without an upgrade; want 426", got.Status)
	}
}

// shake sends an upgrade request as it is and returns the answer.
func shake(t *testing.T, p *process, path string, header http.Header) (net.Conn, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), "GET", "http://"+p.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), req)
	if err != nil {
		t.Fatal(err)
	}
	return conn, res
}

// frame is a masked frame with a mask of zeros, so that the payload stands as it is.
func frame(first byte, payload string) []byte {
	return append([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
}

func TestEchoOfRawFrames(t *testing.T) {
	t.Parallel()
	p := startEcho(t)
	big := binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, 1<<20+1)
	tests := map[string]struct {
		send []byte
		want []byte
	}{
		"fragments with a ping between": {
			bytes.Join([][]byte{frame(0x01, "iron "), frame(0x89, "hi"), frame(0x00, "and "), frame(0x80, "coke")}, nil),
			append([]byte{0x8a, 2, 'h', 'i', 0x81, 13}, "iron and coke"...),
		},
		"not masked":             {[]byte{0x81, 0x01, 'x'}, closing(1002)},
		"reserved bit":           {frame(0xc1, "x"), closing(1002)},
		"unknown opcode":         {frame(0x83, "x"), closing(1002)},
		"control frame in parts": {frame(0x09, "x"), closing(1002)},
		"continuation alone":     {frame(0x80, "x"), closing(1002)},
		"text within text":       {append(frame(0x01, "x"), frame(0x81, "y")...), closing(1002)},
		"not UTF-8":              {frame(0x81, "\xff"), closing(1007)},
		"too long":               {big, closing(1009)},
		"close without a code":   {frame(0x88, ""), []byte{0x88, 0}},
		"close with 4000":        {frame(0x88, "\x0f\xa0bye"), closing(4000)},
		"close with 1005":        {frame(0x88, "\x03\xed"), closing(1002)},
		"close with half a code": {frame(0x88, "\x03"), closing(1002)},
	}
	header := http.Header{"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"WebSocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn, res := shake(t, p, "/ws", header)
			// The key and its answer are the example of RFC 6455, section 1.3.
			if got, want := res.Header.Get("Sec-Websocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="; got != want {
				t.Fatalf("got proof %q; want %q", got, want)
			}
			if _, err := conn.Write(test.send); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(test.want))
			if _, err := io.ReadFull(conn, got); err != nil {
				t.Fatalf("got %x: %v", got, err)
			}
			if len(got) == 4 {
				got[1] = test.want[1] // of a close: depends on the reason, which is free text
			}
			if !bytes.Equal(got, test.want) {
				t.Errorf("got % x; want % x", got, test.want)
			}
		})
	}
}

// closing is the beginning of a close frame with the code.
func closing(code uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{0x88, 0}, code)
}
