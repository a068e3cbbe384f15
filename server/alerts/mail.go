package alerts

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"slices"
	"strings"
	"time"

	"cupola/store/cf"
)

// How connections to mail servers are encrypted.
const (
	TLSStart = "starttls" // after the greeting; a server without it gets nothing
	TLSFirst = "tls"      // from the first byte
	TLSNone  = "none"
)

// sendMail sends a message as one mail.
func sendMail(ctx context.Context, s cf.AlertSettings, m message) (taken int, err error) {
	host, _, err := net.SplitHostPort(s.Server)
	if err != nil {
		return 0, err
	}
	config, err := tlsConfig(s.CA, host)
	if err != nil {
		return 0, err
	}
	conn, err := operators.Dialer(sendTime).DialContext(ctx, "tcp", s.Server)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if s.TLS == TLSFirst {
		conn = tls.Client(conn, config)
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return 0, err
	}
	if err := c.Hello("localhost"); err != nil {
		return 0, err
	}
	if s.TLS == TLSStart {
		if err := c.StartTLS(config); err != nil {
			return 0, fmt.Errorf("STARTTLS: %w", err)
		}
	}
	if s.User != "" {
		if err := c.Auth(authFor(c, s, host)); err != nil {
			return 0, fmt.Errorf("log in to the mail server: %w", err)
		}
	}
	text, taken := writeMail(s, m, time.Now())
	return taken, transfer(c, s, text)
}

// transfer sends one mail. A server that took it has it, however the session ends.
func transfer(c *smtp.Client, s cf.AlertSettings, text []byte) error {
	from, err := mail.ParseAddress(s.From)
	if err != nil {
		return err
	}
	if err := c.Mail(from.Address); err != nil {
		return err
	}
	for _, to := range s.To {
		a, err := mail.ParseAddress(to)
		if err != nil {
			return err
		}
		if err := c.Rcpt(a.Address); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	_ = c.Quit()
	return nil
}

// writeMail writes the mail. Its ID is that of its first event, so that a mail that is
// sent again is known.
func writeMail(s cf.AlertSettings, m message, now time.Time) (_ []byte, taken int) {
	text, taken := m.text(same, same, 1<<20)
	if m.console != "" {
		text += "\nConsole: " + m.console + "\n"
	}
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	header("From", s.From)
	header("To", strings.Join(s.To, ", "))
	header("Subject", mime.QEncoding.Encode("utf-8", m.subject()))
	header("Date", now.Format(time.RFC1123Z))
	header("Message-ID", "<"+m.events[0].ID+"@"+m.domain+">")
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	q := quotedprintable.NewWriter(&b)
	_, _ = io.WriteString(q, strings.ReplaceAll(text, "\n", "\r\n")) // a buffer takes everything
	_ = q.Close()
	return b.Bytes(), taken
}

// authFor logs in as the server offers: PLAIN, or else LOGIN.
func authFor(c *smtp.Client, s cf.AlertSettings, host string) smtp.Auth {
	_, offered := c.Extension("AUTH")
	methods := strings.Fields(offered)
	if slices.Contains(methods, "LOGIN") && !slices.Contains(methods, "PLAIN") {
		return loginAuth{s.User, s.Pass}
	}
	return smtp.PlainAuth("", s.User, s.Pass, host)
}

// loginAuth is the mechanism LOGIN, which some servers have alone.
type loginAuth struct{ user, password string }

// Start begins, and refuses to show a password to a connection that others can read.
func (loginAuth) Start(server *smtp.ServerInfo) (proto string, toServer []byte, err error) {
	if !server.TLS && !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, server.Name) {
		return "", nil, errors.New("unencrypted connection")
	}
	return "LOGIN", nil, nil
}

// Next answers the two questions of the server.
func (a loginAuth) Next(fromServer []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	switch strings.ToLower(strings.TrimSpace(string(fromServer))) {
	case "username:":
		return []byte(a.user), nil
	case "password:":
		return []byte(a.password), nil
	}
	return nil, fmt.Errorf("the mail server asks %q: LOGIN asks for the user name and the password", clean(string(fromServer), 40))
}
