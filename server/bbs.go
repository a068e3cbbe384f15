package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cupola/runtime/durable"
	"cupola/runtime/lrp"
	"cupola/server/bbs"
	"cupola/store"
)

// BBSFiles are certificates of one's own for the BBS API, in PEM. Without any,
// the daemon makes them.
type BBSFiles struct {
	CA   string // signs clients' certificates
	Cert string
	Key  string
}

// bindBBS binds the listener of Diego's BBS API; nil where there is to be none.
func bindBBS(ctx context.Context, c *Config) (net.Listener, error) {
	if c.BBS == "" || c.BBS == "off" {
		return nil, nil
	}
	l, err := bind(ctx, c, "bbs", c.BBS)
	if err != nil {
		return nil, err
	}
	c.BBS = l.Addr().String()
	return l, nil
}

// Where what a client needs is kept for `cupola credentials --bbs`.
func bbsDir(dataDir string) string     { return filepath.Join(dataDir, "db", "bbs") }
func bbsAddress(dataDir string) string { return filepath.Join(bbsDir(dataDir), "address") }

// ownFiles says, after the address, that others make the certificates.
const ownFiles = "certificates of one's own"

func (d *daemon) openBBS() {
	d.bbs = bbs.New(bbs.Config{Store: d.store, Rows: d.desired, Look: d.loop.Look, Cells: d.presences, Log: d.Log,
		Apps: func(tx *store.Tx) (list []bbs.App, err error) {
			apps, err := d.loop.Apps(tx)
			for _, a := range apps {
				list = append(list, bbs.App(a))
			}
			return list, err
		}})
}

func (d *daemon) presences() (all []lrp.Cell) {
	for _, p := range d.cell.Parts() {
		all = append(all, p.Presence())
	}
	return all
}

// runBBS runs what goes on without clients: tasks have callbacks also when the
// listener was taken away.
func (d *daemon) runBBS(ctx context.Context) error { return d.bbs.Run(ctx) }

// prepareBBS writes what clients of l need, if there is one, before the daemon
// says that it is ready.
func (d *daemon) prepareBBS(l net.Listener) (err error) {
	if l == nil {
		return nil
	}
	if d.bbsTLSNow, err = newRenewed(bbsRenewal, d.bbsTLS, d.Log); err != nil {
		return err
	}
	if err := os.MkdirAll(bbsDir(d.DataDir), 0o700); err != nil {
		return err
	}
	said := d.BBS + "\n"
	if d.BBSFiles != (BBSFiles{}) {
		said += ownFiles + "\n"
	}
	return durable.Ensure(bbsAddress(d.DataDir), []byte(said), 0o600)
}

// serveBBS answers the clients of l, if there is one.
func (d *daemon) serveBBS(ctx context.Context, l net.Listener) error {
	if l == nil {
		return nil
	}
	return d.bbs.Serve(ctx, l, &tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return d.bbsTLSNow.get(), nil }})
}

// bbsRenewal is how often the certificates of the BBS API are looked at: ours, to
// make those anew that near their end, or those that others renew.
const bbsRenewal = 24 * time.Hour

// bbsTLS is how the BBS API speaks.
func (d *daemon) bbsTLS() (*tls.Config, error) {
	files, err := d.bbsFiles()
	if err != nil {
		return nil, fmt.Errorf("make the certificates of the BBS API: %w", err)
	}
	config, err := files.TLS()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of the BBS API: %w", err)
	}
	return config, nil
}

func (d *daemon) bbsFiles() (bbs.Files, error) {
	if own := d.BBSFiles; own != (BBSFiles{}) {
		return bbs.Files{CA: own.CA, ServerCert: own.Cert, ServerKey: own.Key}, nil
	}
	// Diego's own name for it is among them, for clients that insist on one.
	hosts := []string{"localhost", "bbs.service.cf.internal", d.APIHost()}
	for _, ip := range addresses() {
		hosts = append(hosts, ip.String())
	}
	if host, _, err := net.SplitHostPort(d.BBS); err == nil && net.ParseIP(host) == nil {
		hosts = append(hosts, host)
	}
	return bbs.Make(bbsDir(d.DataDir), hosts)
}

// BBSClient is what a client of the BBS API needs. The files are "" where others
// make the certificates.
type BBSClient struct{ URL, CA, Cert, Key string }

// BBSCredentials finds what a client of a data directory's daemon needs.
func BBSCredentials(dataDir string) (BBSClient, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return BBSClient{}, err
	}
	said, err := os.ReadFile(bbsAddress(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return BBSClient{}, fmt.Errorf("the daemon of %s has not served the BBS API yet: start it with --bbs 127.0.0.1:8889", dataDir)
	}
	if err != nil {
		return BBSClient{}, err
	}
	addr, own, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if own == ownFiles {
		return BBSClient{URL: "https://" + addr}, nil
	}
	f := bbs.FilesIn(bbsDir(dataDir))
	return BBSClient{URL: "https://" + addr, CA: f.CA, Cert: f.ClientCert, Key: f.ClientKey}, nil
}
