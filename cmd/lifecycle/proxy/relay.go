package proxy

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

// dialTime bounds the connection to the app, which is in the same container.
const dialTime = 5 * time.Second

// quietTime is how long the app may be silent after the client has said all (Envoy's
// idle_timeout of connections).
const quietTime = time.Hour

// client serves one client, and calls shaken once the handshake is over. An error ends its
// connection and is not reported: the only log here is the app's.
func (p *proxy) client(conn *net.TCPConn, shaken func()) {
	defer p.leave()
	defer conn.Close()
	secure, app, err := p.greet(conn)
	shaken()
	if app != nil {
		defer app.Close()
	}
	if err != nil {
		return
	}
	relay(secure, app)
	_ = secure.Close()
}

// greet shakes hands with a client, and connects to the app.
func (p *proxy) greet(conn *net.TCPConn) (secure *tls.Conn, app *net.TCPConn, err error) {
	now, err := p.settings.current()
	if err != nil {
		return nil, nil, err
	}
	config, address, err := now.of(uint16(conn.LocalAddr().(*net.TCPAddr).Port))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	secure = tls.Server(conn, &tls.Config{MinVersion: config.MinVersion, GetConfigForClient: func(hello *tls.ClientHelloInfo) (_ *tls.Config, err error) {
		// Before the handshake is over: a client that cannot reach the app has said
		// nothing yet, and may try another instance.
		app, err = dial(ctx, address)
		return forClient(config, hello.SupportedProtos), err
	}})
	err = secure.HandshakeContext(ctx)
	return secure, app, err
}

func dial(ctx context.Context, address string) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTime}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// half is a connection that can end in one direction.
type half interface {
	io.ReadWriter
	CloseWrite() error
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
}

// relay forwards both ways until both have ended, or one has failed.
func relay(client, app half) {
	var both sync.WaitGroup
	both.Go(func() {
		if forward(app, client) {
			_ = app.SetReadDeadline(time.Now().Add(quietTime))
		}
	})
	forward(client, app)
	both.Wait()
}

// forward copies what is read until it ends, and ends what is written. It reports
// whether that went well; a failure ends all of both connections.
func forward(to, from half) bool {
	err := move(to, from)
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		past := time.Unix(1, 0)
		_ = to.SetDeadline(past) // of a connection that is closed nothing is awaited
		_ = from.SetDeadline(past)
	}
	return err == nil
}

// bufferBytes is small: most connections are idle most of the time, each with two.
const bufferBytes = 4 << 10

func move(to io.Writer, from io.Reader) error {
	buffer := make([]byte, bufferBytes)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
