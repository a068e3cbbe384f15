package ssh

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"cupola/test/e2e"
)

// browser is a web console's session, got as `cupola open` gives it.
func browser(d *e2e.Daemon) *http.Client {
	d.T.Helper()
	out, err := d.Run("open", "--url", "--data-dir", d.Dir)
	if err != nil {
		d.T.Fatalf("cupola open: %v, %s", err, out)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.T.Fatal(err)
	}
	b := &http.Client{Jar: jar}
	res, err := b.Get(strings.TrimSpace(out))
	if err != nil {
		d.T.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		d.T.Fatalf("got %s for %s", res.Status, out)
	}
	return b
}

// terminal is one of the web console.
type terminal struct {
	*websocket.Conn
	t testing.TB
}

func openTerminal(d *e2e.Daemon, b *http.Client, origin string) (terminal, *http.Response, error) {
	host := "localhost" + d.Addr[strings.LastIndex(d.Addr, ":"):]
	c, res, err := websocket.Dial(d.T.Context(), "ws://"+host+"/console/terminal?index=0&process="+d.Process("probe"),
		&websocket.DialOptions{HTTPClient: b, HTTPHeader: http.Header{"Origin": {origin + host}}})
	return terminal{c, d.T}, res, err
}

func (t terminal) send(kind websocket.MessageType, text string) {
	t.t.Helper()
	if err := t.Write(context.Background(), kind, []byte(text)); err != nil {
		t.t.Fatal(err)
	}
}

// show keeps what the terminal shows, and ends with it.
func (t terminal) show() (shown *screen, ended <-chan struct{}) {
	shown = &screen{}
	end := make(chan struct{})
	go func() {
		defer close(end)
		for {
			_, data, err := t.Read(context.Background())
			if err != nil {
				return
			}
			shown.Write(data)
		}
	}()
	return shown, end
}

// consoleHasATerminal opens one as the web console does: it types, resizes and exits;
// another site opens none; and one ends when ssh is disabled.
func consoleHasATerminal(d *e2e.Daemon) {
	b := browser(d)
	if _, res, err := openTerminal(d, b, "http://evil."); err == nil || res == nil || res.StatusCode != http.StatusForbidden {
		d.T.Errorf("another site: got %v, %v", res, err)
	}
	c, _, err := openTerminal(d, b, "http://")
	if err != nil {
		d.T.Fatal(err)
	}
	c.send(websocket.MessageText, `{"cols": 91, "rows": 17}`)
	shown, ended := c.show()
	size := newSizeProbe(d)
	c.send(websocket.MessageBinary, "echo \"$CF_INSTANCE_INDEX-$TERM\"; "+size+"\n")
	shown.shows(d.T, "0-xterm-256color\r\nsize 17 91\r\n")
	c.send(websocket.MessageText, `{"cols": 120, "rows": 40}`)
	for got := ""; got != "40 120"; { // what is typed may overtake the window
		c.send(websocket.MessageBinary, size+"\n")
		got = shown.shows(d.T, "size (17 91|40 120)\r\n")[1]
	}
	c.send(websocket.MessageBinary, "exit 7\n")
	shown.shows(d.T, `\{"exit":7\}`)
	<-ended
	sshLogged(d, "Successful remote access by 127.0.0.1:")
	audited(d, "audit.app.ssh-authorized", "admin", "0")

	if c, _, err = openTerminal(d, b, "http://"); err != nil {
		d.T.Fatal(err)
	}
	c.send(websocket.MessageText, `{"cols": 80, "rows": 24}`)
	shown, ended = c.show()
	c.send(websocket.MessageBinary, "echo in; cat\n")
	shown.shows(d.T, "in\r\n")
	feature := "/v3/apps/" + d.App("probe") + "/features/ssh"
	d.API("PATCH", feature, e2e.Doc{"enabled": false}, nil)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		d.T.Error("a terminal goes on though ssh was disabled")
	}
	d.API("PATCH", feature, e2e.Doc{"enabled": true}, nil)
}

// consoleOutlivesTheDaemon wants a session to be good at the next daemon.
func consoleOutlivesTheDaemon(d *e2e.Daemon) {
	b := browser(d)
	d.Kill()
	d.Start()
	res, err := b.Get("http://localhost" + d.Addr[strings.LastIndex(d.Addr, ":"):] + "/console/api/userinfo")
	if err != nil {
		d.T.Fatal(err)
	}
	defer res.Body.Close()
	var who struct {
		Name string `json:"user_name"`
	}
	if err := json.NewDecoder(res.Body).Decode(&who); err != nil || who.Name != "admin" {
		d.T.Errorf("got %s, %v, %v", res.Status, who, err)
	}
}
