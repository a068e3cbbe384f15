package restart

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// smtpServer is a mail server that takes mail by STARTTLS from a user who logged in.
type smtpServer struct {
	addr, ca string // the certificate in PEM
	login    string // user and password as PLAIN has them
	config   *tls.Config

	mu    sync.Mutex
	mails []string
}

func newSMTPServer(t *testing.T, user, password string) *smtpServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &smtpServer{addr: l.Addr().String(), ca: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		login:  base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password)),
		config: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// serve speaks with one client.
func (s *smtpServer) serve(conn net.Conn) {
	defer func() { conn.Close() }()
	in := bufio.NewReader(conn)
	say := func(format string, args ...any) { fmt.Fprintf(conn, format+"\r\n", args...) }
	say("220 mail")
	secure, known := false, false
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			say("250-mail\r\n250-%s\r\n250 8BITMIME", map[bool]string{false: "STARTTLS", true: "AUTH PLAIN"}[secure])
		case "STARTTLS":
			say("220 go")
			conn = tls.Server(conn, s.config)
			in, secure = bufio.NewReader(conn), true
		case "AUTH":
			if known = secure && rest == "PLAIN "+s.login; !known {
				say("535 wrong")
				return
			}
			say("235 fine")
		case "DATA":
			if !known {
				say("530 who are you?")
				return
			}
			say("354 go")
			text, err := textproto.NewReader(in).ReadDotBytes()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.mails = append(s.mails, string(bytes.TrimSpace(text)))
			s.mu.Unlock()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}

// with are the mails that hold a text.
func (s *smtpServer) with(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mails {
		if strings.Contains(m, text) {
			found = append(found, m)
		}
	}
	return found
}
