package data

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestDataServicesTLS has apps use services that require TLS, whose certificates are renewed all the while, and a daemon that is killed.
func TestDataServicesTLS(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "postgres,mysql,redis,nats,rabbitmq,smtp,files", "--instance-cert-life", "24s")
	d.Prepared(prepared...)
	refusesTLSParameters(d)
	all := map[string]string{}
	for service := range startTLS {
		all[service] = secureInstance(d, service, service)
	}
	d.PushNotes()
	d.DataBinding("hello-postgres", all["postgres"])
	d.RestartApp("hello-postgres")
	keepNote(d, "by a driver that verifies the server")
	pushClient(d, all["mysql"], all["rabbitmq"], all["nats"])
	answers(d, "mysql", "CREATE TABLE t (n INT)\nINSERT INTO t VALUES (1)\nSELECT COUNT(*) FROM t", "1")
	if said, err := try(d, "mysql?plain", "SELECT 1"); err == nil || !strings.Contains(err.Error(), "Access denied") {
		t.Errorf("got %q, %v; want an app without TLS refused", said, err)
	}
	answers(d, "rabbitmq", "one\n", "done")
	answers(d, "nats", "create", "done")

	keys := map[string]tlsKey{}
	for service, instance := range all {
		keys[service] = tlsKeyOf(d, instance, "verified")
		if service != "mysql" {
			refusesPlain(d, service, instance)
		}
		refusesOthers(d, service, instance, keys[service])
	}
	renewed(d, all, keys)
	copied(d, all["redis"], keys["redis"])
	mixed(d, keys["redis"])
	keyIsNowhere(d, all["postgres"])
}

// tlsKey is what a service key says of TLS.
type tlsKey struct {
	Credentials struct {
		URI, JDBCURL, Host, Username, Password string
		Port                                   int
		TLSPort                                int `json:"tls_port"`
		TLS                                    struct {
			Required bool
			Port     int
			URI      string
			Cert     struct{ CA string }
		}
	}
}

func tlsKeyOf(d *e2e.Daemon, instance, name string) (k tlsKey) {
	d.T.Helper()
	d.API("GET", "/v3/service_credential_bindings/"+keyOf(d, instance, name).guid+"/details", nil, &k)
	return k
}

// roots are the CA of the key; no other is trusted.
func (k tlsKey) roots(t testing.TB) *x509.CertPool {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(k.Credentials.TLS.Cert.CA)) {
		t.Errorf("got the CA %q", k.Credentials.TLS.Cert.CA)
	}
	return roots
}

func instanceWith(d *e2e.Daemon, service, name string, parameters e2e.Doc) error {
	d.T.Helper()
	plan := d.WaitFor("/v3/service_plans?names=small&service_offering_names=" + service + "&available=true")
	return d.Change("POST", "/v3/service_instances", e2e.Doc{"type": "managed", "name": name, "parameters": parameters,
		"relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev")), "service_plan": e2e.ToOne(plan)}})
}

func secureInstance(d *e2e.Daemon, service, name string) (guid string) {
	d.T.Helper()
	if err := instanceWith(d, service, name, e2e.Doc{"tls": "required"}); err != nil {
		d.T.Fatal(err)
	}
	return d.First("/v3/service_instances?names=" + name)
}

func refusesTLSParameters(d *e2e.Daemon) {
	d.T.Helper()
	for service, want := range map[string]string{"redis": `tls "always"; redis takes `, "files": "files takes no parameters"} {
		if err := instanceWith(d, service, "wrong", e2e.Doc{"tls": "always"}); err == nil || !strings.Contains(err.Error(), want) {
			d.T.Errorf("%s: got %v; want %q", service, err, want)
		}
	}
}

// startTLS is what clients of each service send and read before TLS.
var startTLS = map[string]func(net.Conn) error{
	"postgres": func(c net.Conn) error {
		answer := make([]byte, 1)
		_, err := c.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47})
		if err == nil {
			_, err = io.ReadFull(c, answer)
		}
		if err == nil && answer[0] != 'S' {
			err = fmt.Errorf("got %q; want the server to speak TLS", answer)
		}
		return err
	},
	"mysql": func(c net.Conn) error {
		_, err := mysqlPacket(c)
		if err == nil {
			hello := binary.LittleEndian.AppendUint32([]byte{32, 0, 0, 1}, 0x200|0x800|0x8000|0x80000) // which ask for TLS
			_, err = c.Write(append(hello, make([]byte, 28)...))
		}
		return err
	},
	"nats": func(c net.Conn) error {
		info, err := bufio.NewReaderSize(c, 16).ReadString('\n') // the server waits for the client then
		if err == nil && !strings.Contains(info, `"tls_`) {
			err = fmt.Errorf("got %s; want the server to speak TLS", info)
		}
		return err
	},
	"smtp": func(c net.Conn) error {
		text := textproto.NewConn(c)
		_, _, err := text.ReadResponse(220)
		for _, line := range []string{"EHLO x", "STARTTLS"} {
			if err == nil {
				fmt.Fprint(c, line+"\r\n")
				_, _, err = text.ReadResponse(2)
			}
		}
		return err
	},
	"redis":    func(net.Conn) error { return nil },
	"rabbitmq": func(net.Conn) error { return nil },
}

func mysqlPacket(c net.Conn) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	packet := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(c, packet)
	return packet, err
}

// secured connects to an instance with TLS, as the machine itself.
func secured(d *e2e.Daemon, service, instance string, port int, config *tls.Config) (*tls.Conn, error) {
	d.T.Helper()
	c, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", dataAddress(d, instance), port), 5*time.Second)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(c, config)
	err = errors.Join(c.SetDeadline(time.Now().Add(10*time.Second)), startTLS[service](c))
	if err == nil {
		err = secure.Handshake()
	}
	if err != nil {
		c.Close()
	}
	return secure, err
}

// refusesOthers wants clients that verify to refuse a server with another name, or of another CA.
func refusesOthers(d *e2e.Daemon, service, instance string, k tlsKey) {
	d.T.Helper()
	c, err := secured(d, service, instance, k.Credentials.Port, &tls.Config{RootCAs: k.roots(d.T), ServerName: k.Credentials.Host})
	if err != nil {
		d.T.Errorf("%s: %v", service, err)
		return
	}
	c.Close()
	if _, err = secured(d, service, instance, k.Credentials.Port, &tls.Config{RootCAs: k.roots(d.T), ServerName: "other.services.internal"}); !errors.As(err, new(x509.HostnameError)) {
		d.T.Errorf("%s: got %v; want another name refused", service, err)
	}
	if _, err = secured(d, service, instance, k.Credentials.Port, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: k.Credentials.Host}); !errors.As(err, new(x509.UnknownAuthorityError)) {
		d.T.Errorf("%s: got %v; want another CA refused", service, err)
	}
}

// refusesPlain wants an instance that requires TLS to refuse clients without.
func refusesPlain(d *e2e.Daemon, service, instance string) {
	d.T.Helper()
	say := map[string]struct {
		port int
		send func(net.Conn) error
		want string
	}{
		"postgres": {5432, func(c net.Conn) error {
			text := "\x00\x03\x00\x00user\x00u\x00database\x00db\x00\x00"
			_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text)+4)), text...))
			return err
		}, "no encryption"},
		"nats": {4222, func(c net.Conn) error {
			_, err := io.WriteString(c, "CONNECT {\"verbose\":false}\r\n") // the server hangs up
			return err
		}, `"tls_required":true`},
		"smtp": {2525, func(c net.Conn) error {
			_, err := io.WriteString(c, "EHLO x\r\nMAIL FROM:<a@example.com>\r\nQUIT\r\n")
			return err
		}, "530 give STARTTLS first"},
		"redis":    {6379, nil, ""},
		"rabbitmq": {5672, nil, ""},
	}[service]
	c, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", dataAddress(d, instance), say.port), 5*time.Second)
	if say.send == nil {
		if err == nil || !strings.Contains(err.Error(), "refused") {
			d.T.Errorf("%s: got %v; want nothing to listen without TLS", service, err)
		}
		return
	}
	if err != nil {
		d.T.Errorf("%s: %v", service, err)
		return
	}
	defer c.Close()
	err = errors.Join(c.SetDeadline(time.Now().Add(10*time.Second)), say.send(c))
	said, _ := io.ReadAll(io.LimitReader(c, 1<<16))
	if err != nil || !strings.Contains(string(said), say.want) {
		d.T.Errorf("%s: got %q, %v; want %q", service, said, err, say.want)
	}
}

// renewed kills the daemon, and waits until each server shows a later certificate. A connection of before stays.
func renewed(d *e2e.Daemon, all map[string]string, keys map[string]tlsKey) {
	d.T.Helper()
	k := keys["redis"].Credentials
	held, err := secured(d, "redis", all["redis"], k.Port, &tls.Config{RootCAs: keys["redis"].roots(d.T), ServerName: k.Host})
	if err != nil {
		d.T.Fatal(err)
	}
	defer held.Close()
	first := map[string]time.Time{}
	for service, instance := range all {
		if first[service], err = shownUntil(d, service, instance, keys[service]); err != nil {
			d.T.Errorf("%s: %v", service, err)
		}
		if life := time.Until(first[service]); life > 12*time.Minute || life < 10*time.Minute {
			d.T.Errorf("%s: got a certificate for %s; want thirty times 24 s", service, life)
		}
	}
	backends := databasePIDs(d, "postgres: u")
	d.Kill()
	for service, instance := range all { // which a killed daemon does not keep from clients
		if _, err := secured(d, service, instance, keys[service].Credentials.Port, &tls.Config{RootCAs: keys[service].roots(d.T), ServerName: keys[service].Credentials.Host}); err != nil {
			d.T.Errorf("%s, while no daemon runs: %v", service, err)
		}
	}
	d.Start()
	for service, instance := range all {
		e2e.Eventually(d.T, 4*time.Minute, func() string {
			if until, err := shownUntil(d, service, instance, keys[service]); err != nil || !until.After(first[service]) {
				return fmt.Sprintf("%s: got a certificate until %s, %v; want a later one than %s", service, until, err, first[service])
			}
			return ""
		})
	}
	if err := held.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		d.T.Fatal(err)
	}
	fmt.Fprintf(held, "AUTH %s %s\r\nQUIT\r\n", k.Username, k.Password)
	if said, err := io.ReadAll(held); string(said) != "+OK\r\n+OK\r\n" {
		d.T.Errorf("got %q, %v; want the connection kept", said, err)
	}
	if now := databasePIDs(d, "postgres: u"); len(backends) == 0 || len(now) < len(backends) {
		d.T.Errorf("got the backends %v of PostgreSQL, and %v later; want them kept", backends, now)
	}
	keepNote(d, "after the renewal")
	answers(d, "rabbitmq", "all", "one\n")
}

// shownUntil is when the certificate ends that a server shows.
func shownUntil(d *e2e.Daemon, service, instance string, k tlsKey) (t time.Time, err error) {
	d.T.Helper()
	c, err := secured(d, service, instance, k.Credentials.Port, &tls.Config{RootCAs: k.roots(d.T), ServerName: k.Credentials.Host})
	if err != nil {
		return t, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].NotAfter, nil
}

// copied restores a service instance into a new one, which requires TLS, too, and has a certificate of its own name.
func copied(d *e2e.Daemon, instance string, k tlsKey) {
	d.T.Helper()
	services(d, "restore", "redis", backUp(d, "redis"), "--new", "copy")
	guid := d.First("/v3/service_instances?names=copy")
	own := tlsKeyOf(d, guid, "own")
	if !own.Credentials.TLS.Required || own.Credentials.Host == k.Credentials.Host || own.Credentials.URI != own.Credentials.TLS.URI {
		d.T.Errorf("got %+v; want TLS required", own)
	}
	refusesPlain(d, "redis", guid)
	refusesOthers(d, "redis", guid, own)
	if _, err := secured(d, "redis", guid, own.Credentials.Port, &tls.Config{RootCAs: k.roots(d.T), ServerName: k.Credentials.Host}); !errors.As(err, new(x509.HostnameError)) {
		d.T.Errorf("got %v; want the name of the first instance refused", err)
	}
}

// mixed has an instance that does not require TLS: it has both, until it requires TLS.
func mixed(d *e2e.Daemon, secure tlsKey) {
	d.T.Helper()
	guid := d.DataInstance("redis", "both")
	k := tlsKeyOf(d, guid, "both").Credentials
	if !strings.HasPrefix(k.URI, "redis://") || k.Port != 6379 || k.TLS.Required || !strings.HasPrefix(k.TLS.URI, "rediss://") || k.TLS.Port != 6380 || k.TLSPort != 6380 {
		d.T.Errorf("got %+v; want both ways", k)
	}
	if got := redis(d, guid, fmt.Sprintf("AUTH %s %s", k.Username, k.Password)); got != "+OK" {
		d.T.Errorf("got %q without TLS", got)
	}
	redis(d, guid, fmt.Sprintf("AUTH %s %s", k.Username, k.Password), "SET row kept")
	c, err := secured(d, "redis", guid, k.TLS.Port, &tls.Config{RootCAs: secure.roots(d.T), ServerName: k.Host})
	if err != nil {
		d.T.Error(err)
		return
	}
	c.Close()
	if err := d.Change("PATCH", "/v3/service_instances/"+guid, e2e.Doc{"parameters": e2e.Doc{"tls": "required"}}); err != nil {
		d.T.Fatal(err)
	}
	refusesPlain(d, "redis", guid)
	c, err = secured(d, "redis", guid, k.TLS.Port, &tls.Config{RootCAs: secure.roots(d.T), ServerName: k.Host})
	if err != nil {
		d.T.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "AUTH %s %s\r\nGET row\r\nQUIT\r\n", k.Username, k.Password)
	if said, err := io.ReadAll(c); string(said) != "+OK\r\n$4\r\nkept\r\n+OK\r\n" {
		d.T.Errorf("got %q, %v; want the row of before", said, err)
	}
}

// keyIsNowhere looks for private keys in the volume and in the log of an instance.
func keyIsNowhere(d *e2e.Daemon, instance string) {
	d.T.Helper()
	volumes, err := filepath.Glob(filepath.Join(d.Dir, "volumes", instance+"*"))
	if err != nil || len(volumes) == 0 {
		d.T.Fatalf("got %v, %v; want the volume", volumes, err)
	}
	for mark, want := range map[string]bool{"PRIVATE KEY": false, "scram-sha-256": true} { // the latter is in pg_hba.conf
		err := exec.Command("grep", append([]string{"-rqaF", mark}, volumes...)...).Run()
		if (err == nil) != want {
			d.T.Errorf("looking for %q in the volume: %v", mark, err)
		}
	}
	if strings.Contains(d.Log.String(), "PRIVATE KEY") {
		d.T.Error("the log has a private key")
	}
}
