package mail

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// server is one on a port of the loopback, with the user u1 whose password is pw.
func server(t *testing.T, b *box, secure *tls.Config) (address string) {
	t.Helper()
	users := userDir(t.TempDir())
	var said bytes.Buffer
	if err := users.change(strings.NewReader("grant u1 pw\ngrant u2 pw\nrevoke u2\nsay done\nquit\nsay more\n"), &said); err != nil || said.String() != "done\n" {
		t.Fatalf("got %q, %v", &said, err)
	}
	if users.check("u2", "pw") || users.check("../u1", "pw") || users.check("u1", "") {
		t.Error("a user who is not there may log in")
	}
	if err := users.change(strings.NewReader("grant ../../x pw\n"), &said); err == nil {
		t.Error("a user has a path for a name")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { _ = accept(l, b, users, secure) }() // it ends with the listener
	return l.Addr().String()
}

func TestMailsAreKept(t *testing.T) {
	b := &box{dir: t.TempDir(), maxBytes: 1 << 20, maxCount: 3}
	address := server(t, b, nil)
	for n := range 5 {
		body := fmt.Sprintf("Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= %d\r\n\r\n.dot\r\nend", n)
		if err := smtp.SendMail(address, smtp.PlainAuth("", "u1", "pw", "127.0.0.1"), "a@example.com", []string{"b@example.com", "c@example.com"}, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := b.list(10)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %v, %v; want the last 3", all, err)
	}
	var subjects []string
	for _, m := range all {
		subjects = append(subjects, m.Subject)
		var content bytes.Buffer
		if err := b.copyTo(&content, m.ID); err != nil || int64(content.Len()) != m.Size || !strings.HasSuffix(content.String(), "\n.dot\nend\n") || m.From != "a@example.com" || len(m.To) != 2 {
			t.Errorf("got %+v with %q, %v", m, &content, err)
		}
	}
	if got := strings.Join(subjects, ","); got != "Grüße 4,Grüße 3,Grüße 2" {
		t.Errorf("got %s; want the newest first", got)
	}
	if err := smtp.SendMail(address, smtp.PlainAuth("", "u1", "wrong", "127.0.0.1"), "a@example.com", []string{"b@example.com"}, []byte("x")); err == nil || !strings.HasPrefix(err.Error(), "535 ") {
		t.Errorf("got %v; want a wrong password refused", err)
	}
	for _, id := range []string{"", "..", "../users/u1", all[0].ID + "x"} {
		if err := b.copyTo(&bytes.Buffer{}, id); err == nil {
			t.Errorf("got a message %q", id)
		}
	}
}

// TestMailsOverTLS refuses everything before STARTTLS, and reads a certificate that was renewed.
func TestMailsOverTLS(t *testing.T) {
	b := &box{dir: t.TempDir(), maxBytes: 1 << 20, maxCount: 3}
	files := []string{filepath.Join(t.TempDir(), "crt"), filepath.Join(t.TempDir(), "key")}
	address := server(t, b, certificateIn(files))
	for range 2 {
		roots := renew(t, files)
		c, err := smtp.Dial(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Mail("a@example.com"); err == nil || !strings.HasPrefix(err.Error(), "530 ") {
			t.Errorf("got %v; want STARTTLS asked for", err)
		}
		if has, _ := c.Extension("AUTH"); has {
			t.Error("passwords are asked for without TLS")
		}
		err = errors.Join(c.StartTLS(&tls.Config{RootCAs: roots, ServerName: "mails.internal"}), c.Auth(smtp.PlainAuth("", "u1", "pw", "127.0.0.1")), c.Mail("a@example.com"), c.Rcpt("b@example.com"))
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Data()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, "Subject: over TLS\r\n\r\nhello\r\n")
		if err := errors.Join(w.Close(), c.Quit()); err != nil {
			t.Error(err)
		}
	}
	if all, err := b.list(10); err != nil || len(all) != 2 {
		t.Errorf("got %v, %v; want both", all, err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "STARTTLS\r\nMAIL FROM:<smuggled@example.com>\r\n")
	if said, _ := io.ReadAll(c); strings.Contains(string(said), "250") {
		t.Errorf("got %q; want what was said before the handshake refused", said)
	}
	if err := smtp.SendMail(server(t, b, nil), nil, "a@example.com", []string{"b@example.com"}, []byte("x")); err != nil {
		t.Errorf("without TLS: %v", err)
	}
}

// renew writes a new certificate and its key, and returns what trusts it.
func renew(t *testing.T, files []string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"mails.internal"}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots.AppendCertsFromPEM(public)
	err = errors.Join(os.WriteFile(files[0], public, 0o600), os.WriteFile(files[1], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

// TestAMailThatIsCut is not kept, and nothing stays of it.
func TestAMailThatIsCut(t *testing.T) {
	b := &box{dir: t.TempDir(), maxBytes: 1 << 20, maxCount: 3}
	c, err := net.Dial("tcp", server(t, b, nil))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<b@example.com> NOTIFY=NEVER\r\nDATA\r\nSubject: half\r\n")
	for lines := bufio.NewScanner(c); lines.Scan() && !strings.HasPrefix(lines.Text(), "354 "); {
	}
	c.Close()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left, err := os.ReadDir(b.dir)
		if err != nil || len(left) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("got %v; want nothing left", left)
		}
	}
}

func TestTidy(t *testing.T) {
	b := &box{dir: t.TempDir(), maxBytes: 1 << 20, maxCount: 3}
	if err := b.add(Message{Received: time.Now()}, strings.NewReader("Subject: whole\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1.eml", "1.new"} {
		if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.tidy(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(b.dir); err != nil || len(left) != 2 {
		t.Errorf("got %v, %v; want the whole message", left, err)
	}
	if err := (&box{dir: b.dir, maxBytes: 10, maxCount: 3}).add(Message{Received: time.Now()}, strings.NewReader(strings.Repeat("x", 1000))); err == nil {
		t.Error("a message was kept that has no room")
	}
	if err := b.add(Message{Received: time.Now()}, strings.NewReader(strings.Repeat("x", maxMessage+1))); err == nil {
		t.Error("a message was kept that is too large")
	}
	if left, err := os.ReadDir(b.dir); err != nil || len(left) > 2 {
		t.Errorf("got %v, %v; want nothing of what was refused", left, err)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "mails"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var list []Message
	if err := run([]string{"list", dir}, nil, &out); err != nil || json.Unmarshal(out.Bytes(), &list) != nil || list == nil {
		t.Errorf("got %q, %v; want an empty list", &out, err)
	}
	for _, args := range [][]string{nil, {"serve", dir}, {"show", dir}, {"what", dir}} {
		if run(args, nil, &out) == nil {
			t.Errorf("%v did something", args)
		}
	}
}

// FuzzSession talks to a session: it never panics, and keeps nothing without a recipient.
func FuzzSession(f *testing.F) {
	f.Add("EHLO x\r\nAUTH PLAIN AHUxAHB3\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: x\r\n\r\n.\r\nQUIT\r\n")
	f.Add("AUTH LOGIN\r\n=\r\n\r\nMAIL FROM:\r\nRCPT TO:<>\r\nDATA\r\nRSET\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		b := &box{dir: t.TempDir(), maxBytes: 1 << 20, maxCount: 3}
		ours, theirs := net.Pipe()
		go func() {
			_, _ = ours.Write([]byte(text))
			ours.Close()
		}()
		go func() { _, _ = bufio.NewReader(ours).WriteTo(&bytes.Buffer{}) }()
		(&session{conn: theirs, check: func(string, string) bool { return true }, keep: b.add}).run()
		all, err := b.list(10)
		for _, m := range all {
			if len(m.To) == 0 {
				t.Errorf("got %+v", m)
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}
