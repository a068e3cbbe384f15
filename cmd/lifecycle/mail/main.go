package mail

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

const usage = "usage: lifecycle mail serve DIR ADDRESS MAXBYTES [CERTFILE KEYFILE] | change DIR | list DIR | show DIR ID"

// The bounds of a server and of a list.
const (
	maxSessions = 16
	maxMessages = 5000
	maxListed   = 200
)

// Main does what args (without the program's name) say, and returns the exit code.
func Main(args []string) int {
	if err := run(args, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		return 1
	}
	return 0
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return errors.New(usage)
	}
	b := &box{dir: filepath.Join(args[1], "mails"), maxCount: maxMessages}
	users := userDir(filepath.Join(args[1], "users"))
	switch command := args[0]; {
	case command == "serve" && (len(args) == 4 || len(args) == 6):
		max, err := strconv.ParseInt(args[3], 10, 64)
		if err != nil {
			return err
		}
		b.maxBytes = max
		return serve(b, users, args[2], certificateIn(args[4:]))
	case command == "change" && len(args) == 2:
		return users.change(in, out)
	case command == "list" && len(args) == 2:
		all, err := b.list(maxListed)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(append([]Message{}, all...))
	case command == "show" && len(args) == 3:
		return b.copyTo(out, args[2])
	}
	return errors.New(usage)
}

// certificateIn is the TLS of a server with a certificate and a key in two files, which are read for each handshake: they
// are renewed. nil where there are no files.
func certificateIn(files []string) *tls.Config {
	if len(files) == 0 {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(files[0], files[1])
		return &c, err
	}}
}

// serve takes mails until it fails; only over TLS, if that is not nil.
func serve(b *box, users userDir, address string, secure *tls.Config) error {
	for _, dir := range []string{b.dir, string(users)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := b.tidy(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	return accept(l, b, users, secure)
}

func accept(l net.Listener, b *box, users userDir, secure *tls.Config) error {
	slots := make(chan struct{}, maxSessions)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { <-slots }()
				(&session{conn: c, startTLS: secure, check: users.check, keep: b.add}).run()
			}()
		default:
			_, _ = io.WriteString(c, "421 too many connections\r\n") // who does not hear it sees the end
			c.Close()
		}
	}
}

// userDir is a directory with a file for each user, which has the hash of the password:
// that is random and long.
type userDir string

var userRule = pattern.Lazy(`^[a-z0-9]{1,64}$`)

func hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

func (d userDir) check(user, password string) bool {
	if !userRule().MatchString(user) {
		return false
	}
	want, err := os.ReadFile(filepath.Join(string(d), user))
	return err == nil && subtle.ConstantTimeCompare(want, []byte(hash(password))) == 1
}

// change does the lines that it reads, which are "grant USER PASSWORD", "revoke USER" or
// "say TEXT", until one is "quit".
func (d userDir) change(in io.Reader, out io.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		user, password, _ := strings.Cut(rest, " ")
		name := filepath.Join(string(d), user)
		if (verb == "grant" || verb == "revoke") && !userRule().MatchString(user) {
			return errors.New("invalid user")
		}
		var err error
		switch verb {
		case "quit":
			return nil
		case "say":
			_, err = fmt.Fprintln(out, rest)
		case "grant":
			if err = os.RemoveAll(name + ".new"); err == nil {
				_, err = write(name+".new", strings.NewReader(hash(password)))
			}
			if err == nil {
				err = errors.Join(os.Rename(name+".new", name), syncDir(string(d)))
			}
		case "revoke":
			err = errors.Join(os.RemoveAll(name), syncDir(string(d)))
		default:
			err = errors.New("unknown statement")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
