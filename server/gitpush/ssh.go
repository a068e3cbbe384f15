package gitpush

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"cupola/store/cf"
)

// SSHCommand is a command of an SSH session of a user who logged in by a key.
type SSHCommand struct {
	Who         cf.Identity
	Fingerprint string // of the key
	From        string // address of the user
	Line        string // the command; "" asks for a shell
	In          io.ReadCloser
	Out, Err    io.Writer
}

// exitRefused is the exit code of commands that are refused: git's for fatal errors.
const exitRefused = 128

// stalled is how long a push over SSH may send nothing.
const stalled = time.Minute

// ServeSSH runs a command until it or ctx ends, and returns its exit code. The one
// command there is takes a push.
func (f *Face) ServeSSH(ctx context.Context, s SSHCommand) (exit int) {
	if s.Line == "" {
		fmt.Fprintf(s.Err, "Hi %s, your key %s is registered. There is no shell here: push apps with git push. 'cf ssh APP' enters the containers of apps.\r\n", oneLine(s.Who.Username), s.Fingerprint)
		return 1
	}
	service, path, err := parseCommand(s.Line)
	if err != nil {
		fmt.Fprintf(s.Err, "%s\n", err)
		return exitRefused
	}
	if service == receivePack {
		err = f.receiveSSH(ctx, s, path)
	} else {
		err = refusef(http.StatusForbidden, "%s", nothingOut)
	}
	if err == nil {
		return 0
	}
	f.refuseSSH(ctx, s, err)
	return exitRefused
}

// refuseSSH tells git an error in place of the refs (gitprotocol-pack, "pkt-line
// Format": error-line).
func (f *Face) refuseSSH(ctx context.Context, s SSHCommand, err error) {
	if errors.Is(err, errReported) || ctx.Err() != nil {
		return
	}
	shown, ok := errors.AsType[*refusal](err)
	if !ok {
		f.Log.ErrorContext(ctx, "git push failed", "command", oneLine(s.Line), "err", err)
		shown = &refusal{http.StatusInternalServerError, "An unknown error occurred: the daemon's log has it."}
	}
	_ = pktline.NewEncoder(s.Out).EncodeString("ERR " + oneLine(shown.text) + "\n") // the client may be gone
}

// errReported says that the client already got the error.
var errReported = errors.New("the push is refused")

// receiveSSH takes a push (gitprotocol-pack, "Pushing Data To a Server"): the refs go
// first, then the client's order and its pack come on the same stream.
func (f *Face) receiveSSH(ctx context.Context, s SSHCommand, path []string) error {
	t, err := f.sshTarget(ctx, s, path)
	if err != nil {
		return err
	}
	if err := f.listRefs(s.Out, t.app); err != nil {
		return nil // the client is gone
	}
	body := bufio.NewReader(http.MaxBytesReader(nil, watchStream(s.In), maxPack))
	o, err := readOrder(body)
	if err != nil {
		return refusef(http.StatusBadRequest, "%s", err)
	}
	if len(o.updates) == 0 {
		return nil
	}
	p := &push{Face: f, target: t, order: o}
	err = p.run(ctx, func(to io.Writer) error { return limits.Copy(to, body) }, s.Out)
	if refused, ok := errors.AsType[*refusal](err); ok && o.sideband && p.out == nil {
		mux := sideband.NewMuxer(sideband.Sideband64k, s.Out)
		_, _ = mux.WriteChannel(sideband.ErrorMessage, []byte(oneLine(refused.text)+"\n"))
		return errReported
	}
	return err
}

// sshTarget is the app of a path, with a client that acts as the user.
func (f *Face) sshTarget(ctx context.Context, s SSHCommand, path []string) (*target, error) {
	if len(path) != 3 {
		return nil, refusef(http.StatusNotFound, "This is not a repository. Push to ssh://git@HOST:PORT/ORG/SPACE/APP.git: 'cupola git remote APP --ssh' prints the address.")
	}
	c := &client{api: f.api, host: f.API.Host, remote: s.From}
	if f.API.Scheme == "https" {
		c.tls = &tls.ConnectionState{HandshakeComplete: true}
	}
	c.renew = func(ctx context.Context) (string, error) {
		r, err := c.request(ctx, http.MethodPost, "/oauth/token", nil)
		if err != nil {
			return "", err
		}
		return f.KeyToken(r, s.Fingerprint)
	}
	if err := c.login(ctx); err != nil {
		return nil, err
	}
	return f.target(ctx, c, path[0], path[1], path[2])
}

// maxCommand bounds a command, in bytes.
const maxCommand = 4096

var errCommand = errors.New("only git push is served here: no other command is run")

// parseCommand reads the command that git sends: a service, and a path in the quotes of
// a shell. No shell reads it.
func parseCommand(line string) (service string, path []string, err error) {
	line = strings.TrimSpace(strings.Replace(line, "git ", "git-", 1)) // "git receive-pack" is another way to write it
	service, rest, found := strings.Cut(line, " ")
	if !found || len(line) > maxCommand || service != receivePack && service != "git-upload-pack" && service != "git-upload-archive" {
		return "", nil, errCommand
	}
	text, ok := unquote(strings.TrimSpace(rest))
	if !ok {
		return "", nil, errCommand
	}
	return service, strings.Split(strings.Trim(text, "/"), "/"), nil
}

// unquote reads one word as git quotes it: in single quotes, with ' and ! escaped
// outside of them.
func unquote(s string) (string, bool) {
	var word strings.Builder
	for quoted := false; s != ""; s = s[1:] {
		switch {
		case s[0] == '\'':
			quoted = !quoted
			if len(s) == 1 && quoted {
				return "", false
			}
		case quoted:
			word.WriteByte(s[0])
		case s[0] == '\\' && len(s) > 1 && (s[1] == '\'' || s[1] == '!'):
			s = s[1:]
			word.WriteByte(s[0])
		case strings.IndexByte("\\\"$`;&|<>(){}*?[]#~! \t\r\n", s[0]) >= 0:
			return "", false
		default:
			word.WriteByte(s[0])
		}
		if len(s) == 1 && quoted {
			return "", false
		}
	}
	return word.String(), word.Len() > 0
}

// stream closes itself when a read waits for too long.
type stream struct {
	io.ReadCloser
	timer *time.Timer
}

func watchStream(in io.ReadCloser) *stream {
	timer := time.AfterFunc(stalled, func() { _ = in.Close() })
	timer.Stop()
	return &stream{in, timer}
}

func (s *stream) Read(b []byte) (int, error) {
	s.timer.Reset(stalled)
	defer s.timer.Stop()
	return s.ReadCloser.Read(b)
}
