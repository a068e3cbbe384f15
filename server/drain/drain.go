package drain

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"cupola/runtime/egress"
)

// Drain is where the log of an app goes.
type Drain struct {
	AppGUID string
	URL     string // syslog://host[:port] or syslog-tls://host[:port]
	Host    string // the HOSTNAME of the messages
	// What a TLS drain may ask of its clients, and whom it is known by, in PEM;
	// "" for no certificate, and for the machine's own authorities.
	Cert, Key, CA string
}

// The ports where a URL has none: those of RFC 6587 and RFC 5425.
const (
	portTCP = "514"
	portTLS = "6514"
)

// The times of a connection.
const (
	dialTime  = 10 * time.Second
	writeTime = 20 * time.Second
)

// dialer connects to drains.
type dialer struct {
	where egress.Guard
}

// dial connects to a drain.
func (d dialer) dial(ctx context.Context, to Drain) (net.Conn, error) {
	u, err := url.Parse(to.URL)
	if err != nil {
		return nil, errors.New("the drain's URL cannot be parsed") // without the URL, which may hold a password
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	plain := d.where.Dialer(dialTime)
	switch u.Scheme {
	case "syslog":
		return plain.DialContext(ctx, "tcp", hostPort(u, portTCP))
	case "syslog-tls":
		config, err := to.tls()
		if err != nil {
			return nil, err
		}
		secure := tls.Dialer{NetDialer: plain, Config: config}
		return secure.DialContext(ctx, "tcp", hostPort(u, portTLS))
	}
	return nil, fmt.Errorf("a drain's URL must begin with syslog:// or syslog-tls://, not %s://", u.Scheme)
}

func hostPort(u *url.URL, port string) string {
	if p := u.Port(); p != "" {
		port = p
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// tls is the configuration of a drain's connections.
func (to Drain) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if to.CA != "" {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM([]byte(to.CA)) {
			return nil, errors.New("the credential 'ca' of the drain's service holds no certificate in PEM")
		}
	}
	if to.Cert != "" || to.Key != "" {
		pair, err := tls.X509KeyPair([]byte(to.Cert), []byte(to.Key))
		if err != nil {
			return nil, errors.New("the credentials 'cert' and 'key' of the drain's service are not a pair in PEM")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// shown is the URL without what may be secret.
func (to Drain) shown() string {
	u, err := url.Parse(to.URL)
	if err != nil {
		return "(not a URL)"
	}
	return u.Scheme + "://" + u.Host
}
