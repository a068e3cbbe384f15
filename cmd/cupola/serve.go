package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"cupola/server"
	"cupola/server/systemd"
	"cupola/server/uaa"
)

// daemonFlags say which daemon is meant.
type daemonFlags struct {
	DataDir string `help:"Where everything is kept." default:"/var/lib/cupola" env:"CUPOLA_DATA_DIR" placeholder:"DIR"`
}

type serveCmd struct {
	daemonFlags
	registryFlags
	cellFlags
	HTTP             string         `help:"Listen here for API and apps." default:"127.0.0.1:8080" env:"CUPOLA_HTTP" placeholder:"ADDR"`
	HTTPS            string         `help:"Listen here with TLS; 'off' for not at all." default:"127.0.0.1:8443" env:"CUPOLA_HTTPS" placeholder:"ADDR"`
	SSH              string         `name:"ssh" help:"Listen here for 'cf ssh'; 'off' for not at all. 127.0.0.1:2222 when not given, or a free port where that is taken." env:"CUPOLA_SSH" placeholder:"ADDR"`
	TCP              string         `name:"tcp" help:"Listen here for TCP routes: an address and the ports that they can have, like 127.0.0.1:1024-1123,2000; 'off' for no TCP routes." default:"127.0.0.1:1024-1123" env:"CUPOLA_TCP" placeholder:"ADDR"`
	BBS              string         `name:"bbs" help:"Listen here for clients of Diego's BBS API, like cfdot; not at all when not given." env:"CUPOLA_BBS" placeholder:"ADDR"`
	BBSCA            string         `name:"bbs-ca" help:"The CA of those clients' certificates; made once when not given." env:"CUPOLA_BBS_CA" placeholder:"FILE"`
	BBSCert          string         `name:"bbs-cert" help:"The certificate of the BBS API, with --bbs-ca." env:"CUPOLA_BBS_CERT" placeholder:"FILE"`
	BBSKey           string         `name:"bbs-key" help:"Its key." env:"CUPOLA_BBS_KEY" placeholder:"FILE"`
	Metrics          string         `help:"Listen here for Prometheus, which gets /metrics without a password; not at all when not given." env:"CUPOLA_METRICS" placeholder:"ADDR"`
	Domain           string         `help:"The domain of apps. The API is api.DOMAIN, localhost and every IP address." default:"localhost" env:"CUPOLA_DOMAIN"`
	AdminPassword    string         `help:"The admin's password; made once when not given." env:"CUPOLA_ADMIN_PASSWORD" placeholder:"PASSWORD"`
	PasswordPolicy   map[string]int `help:"What users' new passwords must have: min-length, upper, lower, digits, special, like min-length=12,digits=1." mapsep:"," env:"CUPOLA_PASSWORD_POLICY" placeholder:"NAME=N,…"`
	AllowLoopback    bool           `help:"Let users' syslog drains, route services, registries of images and brokers of spaces be at this machine's own addresses, where services may trust whoever connects." env:"CUPOLA_ALLOW_LOOPBACK"`
	DataServices     []string       `name:"data-services" help:"What the built-in service broker offers, of postgres, redis and files; it is off when not given. It needs the stack of 'cupola broker prepare'." env:"CUPOLA_DATA_SERVICES" placeholder:"NAME"`
	MaxBindings      int            `name:"max-service-bindings" help:"How many bindings an app can have to one service instance at a time: more than one lets them be rotated." default:"5" env:"CUPOLA_MAX_SERVICE_BINDINGS" placeholder:"N"`
	InstanceCertLife time.Duration  `help:"How long the certificates of instances are good. They are replaced half an hour before their end, or a quarter of their life." default:"24h" env:"CUPOLA_INSTANCE_CERT_LIFE" placeholder:"TIME"`
	DefaultStack     string         `help:"The stack of apps that name none; the best this machine has when not given." env:"CUPOLA_DEFAULT_STACK" placeholder:"NAME"`
}

// Run runs the daemon until a signal ends it.
func (s *serveCmd) Run(e *env) error {
	registries, err := s.registries()
	if err != nil {
		return err
	}
	listeners, err := systemd.Listeners()
	if err != nil {
		return err
	}
	passwords, err := uaa.ParsePolicy(s.PasswordPolicy)
	if err != nil {
		return fmt.Errorf("--password-policy: %w", err)
	}
	c := server.Config{Listeners: listeners, Manager: systemd.FromEnvironment(), DataDir: s.DataDir, HTTP: s.HTTP, HTTPS: s.HTTPS, SSH: s.SSH, TCP: s.TCP, Domain: s.Domain,
		BBS: s.BBS, Metrics: s.Metrics, BBSFiles: server.BBSFiles{CA: s.BBSCA, Cert: s.BBSCert, Key: s.BBSKey},
		AdminPassword: s.AdminPassword, Passwords: passwords, DefaultStack: s.DefaultStack, MaxBindings: s.MaxBindings, DataServices: s.DataServices, AllowLoopback: s.AllowLoopback, InstanceCertLife: s.InstanceCertLife, Registries: registries, Log: e.log}
	s.apply(&c)
	return server.Run(e.ctx, c, func(r server.Ready) { welcome(e, r) })
}

// welcome says what a newcomer needs to know of a daemon that serves.
func welcome(e *env, r server.Ready) {
	t := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	row := func(k, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", k, e.called(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintln(t, "cupola is ready.")
	row("API", "%s", apiURL(r))
	row("apps", "http://<app>.%s%s", r.Domain, strings.TrimPrefix(apiURL(r), "http://"+hostOf(apiURL(r))))
	if r.HTTPS != "" {
		row("TLS", "%s  (its CA: %s)", r.HTTPS, r.CA)
	}
	if r.SSH != "" {
		row("ssh", "%s  (cf ssh APP)", r.SSH)
	}
	if r.BBS != "" {
		row("BBS", "https://%s  (eval \"$(sudo cupola credentials --bbs%s)\"; cfdot …)", r.BBS, dataDirFlag(r))
	}
	if r.Metrics != "" {
		row("metrics", "%s", r.Metrics)
	}
	row("log in", "cf login -a %s -u admin -p \"$(sudo cupola credentials%s)\"", apiURL(r), dataDirFlag(r))
	row("stack", "%s", r.Stack)
	row("data", "%s", r.DataDir)
	if r.Running > 0 {
		row("running", "%d containers, adopted from before", r.Running)
	}
	t.Flush()
}

// apiURL is the URL of the API as a client on this machine should type it.
func apiURL(r server.Ready) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.HTTP, "http://"))
	host := "api." + r.Domain
	if r.Domain == "localhost" {
		host = "localhost" // names below it resolve in browsers and curl, and not for the cf CLI
	}
	return "http://" + net.JoinHostPort(host, port)
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Hostname()
}

func dataDirFlag(r server.Ready) string {
	if r.DataDir == server.DefaultDataDir {
		return ""
	}
	return " --data-dir " + r.DataDir
}

type credentialsCmd struct {
	daemonFlags
	BBS bool `name:"bbs" help:"Tell what clients of the BBS API, like cfdot, need in their environment instead."`
}

// Run prints the password and nothing else, so that it can be used in a
// command line.
func (c *credentialsCmd) Run(e *env) error {
	if c.BBS {
		return c.bbs(e)
	}
	password, err := server.AdminPassword(c.DataDir)
	if errors.Is(err, fs.ErrPermission) {
		return errors.New("only root may read the password: run it with sudo")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no password yet: start the daemon with 'sudo cupola serve', or give --data-dir", c.DataDir)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.out, password)
	return err
}

// bbs prints lines for a shell.
func (c *credentialsCmd) bbs(e *env) error {
	have, err := server.BBSCredentials(c.DataDir)
	if errors.Is(err, fs.ErrPermission) {
		return errors.New("only root may read the key: run it with sudo")
	}
	if err != nil {
		return err
	}
	for _, v := range [][2]string{{"BBS_URL", have.URL}, {"CA_CERT_FILE", have.CA}, {"CLIENT_CERT_FILE", have.Cert}, {"CLIENT_KEY_FILE", have.Key}} {
		if v[1] != "" {
			fmt.Fprintf(e.out, "export %s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
		}
	}
	return nil
}

type cleanupCmd struct{ daemonFlags }

// Run ends what still runs.
func (c *cleanupCmd) Run(e *env) error {
	if _, err := os.Stat(c.DataDir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(e.out, "%s does not exist: nothing to clean up.\n", c.DataDir)
		return nil
	}
	if err := server.Cleanup(e.ctx, server.Config{DataDir: c.DataDir, Log: e.log}); err != nil {
		return err
	}
	fmt.Fprint(e.out, e.called(fmt.Sprintf("Nothing of %s runs any longer. Its apps start again with the next 'cupola serve'.\n", c.DataDir)))
	return nil
}
