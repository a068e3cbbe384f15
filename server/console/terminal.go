package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/websocket"

	"cupola/runtime/fault"
	"cupola/server/refusal"
	"cupola/server/sshproxy"
	"cupola/store"
	"cupola/store/cf"
)

// The bounds of a terminal's messages.
const (
	maxMessage = 1 << 20 // bytes; a paste
	maxSide    = 1000    // columns, rows
)

// terminal is `cf ssh` over a websocket: binary messages are what the terminal reads
// and writes, text messages its size, and at the end its exit code or an error.
func (c *Console) terminal(w http.ResponseWriter, r *http.Request) {
	s, ok, err := c.session(r)
	process := r.URL.Query().Get("process")
	index, badIndex := strconv.ParseUint(r.URL.Query().Get("index"), 10, 31)
	switch {
	case err != nil:
		c.fail(w, r, err)
		return
	case !ok:
		refuseStranger(w)
		return
	case !sameOrigin(r):
		refuseForeign(w)
		return
	case c.SSH == nil:
		refusal.Write(w, http.StatusNotFound, 10000, "CF-NotFound", "cf ssh is off: start the daemon with --ssh")
		return
	case process == "" || badIndex != nil:
		refusal.Write(w, http.StatusBadRequest, 10005, "CF-BadQueryParameter", "The query needs process=GUID and index=NUMBER")
		return
	}
	one, ctx, ok := c.live.begin(r.Context(), s.key, s.login.UserGUID)
	if !ok {
		refuseMany(w)
		return
	}
	defer c.live.finish(s.key, one)
	defer c.feed.hold()()
	c.whileAllowed(ctx, one, func(tx *store.Tx) (bool, error) { return c.mayEnter(tx, s, process) })
	websocket.Server{Handler: func(conn *websocket.Conn) { c.shell(ctx, conn, s, process, int(index), r.RemoteAddr) }}.ServeHTTP(w, r)
}

// sameOrigin reports whether a websocket is of the console's own page: browsers send
// cookies with those of other sites too.
func sameOrigin(r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return r.Header.Get("Origin") == scheme+r.Host
}

func (c *Console) mayEnter(tx *store.Tx, s session, process string) (bool, error) {
	who, _, ok, err := c.identify(tx, s)
	if err != nil || !ok {
		return false, err
	}
	return c.SSH.MayEnter(tx, who, process)
}

// shell joins a websocket and a shell until either ends.
func (c *Console) shell(ctx context.Context, conn *websocket.Conn, s session, process string, index int, from string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	conn.MaxPayloadBytes = maxMessage
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	out := &frames{conn: conn}
	size, err := firstSize(conn)
	if err != nil {
		return
	}
	var who cf.Identity
	err = c.Store.Read(ctx, func(tx *store.Tx) (err error) {
		var ok bool
		if who, _, ok, err = c.identify(tx, s); err == nil && !ok {
			err = errSessionEnded
		}
		return err
	})
	if err != nil {
		out.text(map[string]string{"error": err.Error()})
		return
	}
	in, typed := io.Pipe()
	defer in.Close()
	resized := make(chan [2]uint32, 1)
	fault.Go("console", func() {
		defer cancel()
		defer typed.Close()
		receive(conn, typed, resized)
	})
	exit, err := c.SSH.Shell(ctx, who, process, index, sshproxy.Terminal{Columns: size[0], Rows: size[1], In: in, Out: out, Resized: resized, From: from})
	if err != nil {
		out.text(map[string]string{"error": err.Error()})
		return
	}
	out.text(map[string]int{"exit": exit})
}

// frames writes a terminal's output as binary messages.
type frames struct{ conn *websocket.Conn }

func (f *frames) Write(p []byte) (int, error) {
	_ = f.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if err := websocket.Message.Send(f.conn, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// text sends a message about the terminal; the client may be gone.
func (f *frames) text(v any) {
	_ = f.conn.SetWriteDeadline(time.Now().Add(writeTime))
	_ = websocket.JSON.Send(f.conn, v)
}

// message is one of a client: what is typed, or a size.
type message struct {
	typed []byte
	size  [2]uint32
}

var errSize = errors.New("the first message of a terminal is its size")

var messages = websocket.Codec{Unmarshal: func(data []byte, kind byte, v any) error {
	m := v.(*message)
	*m = message{}
	if kind == websocket.BinaryFrame {
		m.typed = data
		return nil
	}
	var size struct{ Cols, Rows uint32 }
	if err := json.Unmarshal(data, &size); err != nil {
		return err
	}
	if size.Cols == 0 || size.Rows == 0 || size.Cols > maxSide || size.Rows > maxSide {
		return errSize
	}
	m.size = [2]uint32{size.Cols, size.Rows}
	return nil
}}

func firstSize(conn *websocket.Conn) ([2]uint32, error) {
	var m message
	err := messages.Receive(conn, &m)
	if err == nil && m.size == [2]uint32{} {
		err = errSize
	}
	return m.size, err
}

// receive passes on what a client sends until it leaves.
func receive(conn *websocket.Conn, typed io.Writer, resized chan [2]uint32) {
	for {
		var m message
		if err := messages.Receive(conn, &m); err != nil {
			return
		}
		if m.typed != nil {
			if _, err := typed.Write(m.typed); err != nil {
				return
			}
			continue
		}
		select {
		case <-resized: // an older size that was not read
		default:
		}
		resized <- m.size
	}
}
