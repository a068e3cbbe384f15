package mail

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	netmail "net/mail"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// The bounds of a session, in bytes, recipients and time.
const (
	maxMessage    = 10 << 20
	maxLine       = 4 << 10
	maxRecipients = 100
	maxErrors     = 20
	idle          = 5 * time.Minute
)

// session is one connection of RFC 5321.
type session struct {
	conn     net.Conn
	r        *bufio.Reader
	startTLS *tls.Config // what the client has to begin with STARTTLS; nil: nothing, or it has
	check    func(user, password string) bool
	keep     func(Message, io.Reader) error

	m      Message // whose envelope is being read
	sender bool    // MAIL was given
	faults int
}

var errQuit = errors.New("the client is done")

func (s *session) say(code int, text string) error {
	if code >= 500 {
		if s.faults++; s.faults > maxErrors {
			return errQuit
		}
	}
	_, err := fmt.Fprintf(s.conn, "%d %s\r\n", code, text)
	return err
}

// run talks until the client ends it or is silent for too long.
func (s *session) run() {
	defer func() { s.conn.Close() }()
	s.r = bufio.NewReaderSize(s.conn, maxLine)
	err := s.say(220, "cupola keeps mails and delivers none")
	for err == nil {
		var line string
		if line, err = s.line(); err == nil {
			err = s.do(line)
		}
	}
}

// line reads a line without its end. One that is too long ends the session.
func (s *session) line() (string, error) {
	if err := s.conn.SetDeadline(time.Now().Add(idle)); err != nil {
		return "", err
	}
	line, err := s.r.ReadSlice('\n')
	return strings.TrimRight(string(line), "\r\n"), err
}

func (s *session) do(line string) error {
	verb, args, _ := strings.Cut(line, " ")
	verb = strings.ToUpper(verb)
	if s.startTLS != nil && !slices.Contains([]string{"HELO", "EHLO", "STARTTLS", "NOOP", "QUIT"}, verb) {
		return s.say(530, "give STARTTLS first")
	}
	switch verb {
	case "HELO":
		s.reset()
		return s.say(250, "cupola")
	case "EHLO":
		s.reset()
		last := "AUTH PLAIN LOGIN"
		if s.startTLS != nil {
			last = "STARTTLS"
		}
		_, err := fmt.Fprintf(s.conn, "250-cupola\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-SIZE %d\r\n250 %s\r\n", maxMessage, last)
		return err
	case "STARTTLS":
		return s.secure()
	case "AUTH":
		return s.auth(args)
	case "MAIL":
		return s.mail(args)
	case "RCPT":
		return s.recipient(args)
	case "DATA":
		return s.data()
	case "RSET":
		s.reset()
		return s.say(250, "OK")
	case "NOOP":
		return s.say(250, "OK")
	case "QUIT":
		return errors.Join(s.say(221, "bye"), errQuit)
	}
	return s.say(502, "unknown command")
}

// secure goes on over TLS. What came before the handshake is not taken for what came over TLS.
func (s *session) secure() error {
	if s.startTLS == nil {
		return s.say(503, "there is no TLS to start")
	}
	if s.r.Buffered() > 0 {
		return errors.New("the client did not wait for the answer to STARTTLS")
	}
	if err := s.say(220, "go ahead"); err != nil {
		return err
	}
	c := tls.Server(s.conn, s.startTLS)
	s.conn, s.startTLS = c, nil
	s.r.Reset(c)
	s.reset()
	return c.Handshake()
}

func (s *session) reset() { s.m, s.sender = Message{}, false }

// auth checks a password by PLAIN or LOGIN.
func (s *session) auth(args string) error {
	kind, first, _ := strings.Cut(args, " ")
	var user, password string
	var err error
	switch strings.ToUpper(kind) {
	case "PLAIN":
		if first == "" {
			if first, err = s.prompt(""); err != nil {
				return err
			}
		}
		parts := strings.Split(decoded(first), "\x00")
		if len(parts) != 3 {
			return s.say(501, "invalid credentials of AUTH PLAIN")
		}
		user, password = parts[1], parts[2]
	case "LOGIN":
		if first == "" {
			if first, err = s.prompt("Username:"); err != nil {
				return err
			}
		}
		second, err := s.prompt("Password:")
		if err != nil {
			return err
		}
		user, password = decoded(first), decoded(second)
	default:
		return s.say(504, "use AUTH PLAIN or AUTH LOGIN")
	}
	if !s.check(user, password) {
		return s.say(535, "invalid user or password")
	}
	return s.say(235, "OK")
}

func (s *session) prompt(text string) (string, error) {
	if err := s.say(334, base64.StdEncoding.EncodeToString([]byte(text))); err != nil {
		return "", err
	}
	return s.line()
}

// decoded is text of base64; "" if it is none.
func decoded(text string) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return string(raw)
}

func (s *session) mail(args string) error {
	from, ok := path(args, "FROM:")
	if !ok {
		return s.say(501, "invalid address: give MAIL FROM:<address>")
	}
	s.reset()
	s.m.From, s.sender = from, true
	return s.say(250, "OK")
}

func (s *session) recipient(args string) error {
	to, ok := path(args, "TO:")
	switch {
	case !s.sender:
		return s.say(503, "give MAIL first")
	case !ok || to == "":
		return s.say(501, "invalid address: give RCPT TO:<address>")
	case len(s.m.To) >= maxRecipients:
		return s.say(452, "too many recipients")
	}
	s.m.To = append(s.m.To, to)
	return s.say(250, "OK")
}

// path is the address in the argument of MAIL or RCPT, whose parameters it leaves out. It
// is empty for the sender of bounces.
func path(args, prefix string) (address string, ok bool) {
	if len(args) < len(prefix) || !strings.EqualFold(args[:len(prefix)], prefix) {
		return "", false
	}
	text, _, _ := strings.Cut(strings.TrimSpace(args[len(prefix):]), " ")
	if text == "<>" {
		return "", true
	}
	a, err := netmail.ParseAddress(text)
	if err != nil || !strings.HasPrefix(text, "<") {
		return "", false
	}
	return a.Address, true
}

func (s *session) data() error {
	if len(s.m.To) == 0 {
		return s.say(503, "give MAIL and RCPT first")
	}
	if err := s.say(354, "end with a line that is a dot"); err != nil {
		return err
	}
	content := timed{s.conn, textproto.NewReader(s.r).DotReader()}
	m := s.m
	m.Received = time.Now()
	s.reset()
	kept := s.keep(m, content)
	if _, err := io.Copy(io.Discard, content); err != nil { // what was not read
		return err
	}
	switch {
	case errors.Is(kept, errTooLarge):
		return s.say(552, errTooLarge.Error())
	case kept != nil:
		return s.say(452, "the message was not kept")
	}
	return s.say(250, "OK: kept, not delivered")
}

// timed reads from a client that may be silent only for a while.
type timed struct {
	conn net.Conn
	io.Reader
}

func (t timed) Read(p []byte) (int, error) {
	if err := t.conn.SetDeadline(time.Now().Add(idle)); err != nil {
		return 0, err
	}
	return t.Reader.Read(p)
}
