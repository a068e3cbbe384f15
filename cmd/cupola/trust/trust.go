package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cupola/cmd/cupola/command"
	"cupola/runtime/authority"
	"cupola/server/admin"
	"cupola/server/certs"
	"cupola/server/datadir"
)

// Cmd is the command.
type Cmd struct {
	command.DaemonFlags
	Only   []string `help:"Trust the CA for these domains, and those below them, alone; the daemon's own --domain should be one of them. Addresses of private networks and localhost are trusted, too." placeholder:"DOMAIN"`
	Remove bool     `help:"Remove the CA from the stores again." xor:"what"`
	Print  bool     `help:"Print the CA's certificate in PEM and change nothing." xor:"what"`
	Root   string   `help:"Change the system's store below this directory, the root of another system, and no user's." placeholder:"DIR"`
}

// Run changes the stores and says what it did.
func (c *Cmd) Run(e *command.Env) error {
	ca, err := c.certificate()
	if err != nil {
		return err
	}
	if c.Print {
		_, err := e.Out.Write(ca.pem)
		return err
	}
	if err := admin.NeedRoot(); err != nil {
		return err
	}
	stores := systemStores(c.Root)
	if c.Root == "" {
		stores = append(stores, userStores(callingUser())...)
	}
	return change(e.Out, ca, stores, c.Remove, run)
}

// certificate reads the CA of the data directory; with Only, it signs one that is
// good for these domains alone.
func (c *Cmd) certificate() (authorityCert, error) {
	file := filepath.Join(c.DataDir, datadir.AuthorityFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return authorityCert{}, fmt.Errorf("%s has no CA yet: start a daemon with 'sudo cupola serve', or give --data-dir", c.DataDir)
	}
	if err != nil {
		return authorityCert{}, err
	}
	block, _ := pem.Decode(text) // the newest is first; those before it have the same key
	if block == nil {
		return authorityCert{}, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return authorityCert{}, fmt.Errorf("%s: %w", file, err)
	}
	if len(c.Only) > 0 && !c.Remove {
		if err := admin.NeedRoot(); err != nil { // for the key
			return authorityCert{}, err
		}
		if cert, err = authority.Constrained(datadir.AuthorityConfig(c.DataDir), c.Only, certs.Addresses()); err != nil {
			return authorityCert{}, fmt.Errorf("invalid --only: %w", err)
		}
	}
	return newAuthorityCert(cert), nil
}

// authorityCert is a CA's certificate, and its name in stores. The name follows from the
// key, so that it stays when the certificate is renewed.
type authorityCert struct {
	name string
	pem  []byte
}

func newAuthorityCert(c *x509.Certificate) authorityCert {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return authorityCert{"cupola-" + hex.EncodeToString(sum[:4]), authority.PEM(c.Raw)}
}

// runner runs a program of a store.
type runner func(p program) ([]byte, error)

// store is a store of trusted certificates.
type store interface {
	// String names the store.
	String() string
	// add adds a CA, unless it is there as it is, and reports whether it changed the store.
	add(authorityCert, runner) (changed bool, err error)
	// remove removes a CA, and reports whether it was there.
	remove(authorityCert, runner) (changed bool, err error)
}

// change adds a CA to stores, or removes it, and prints what became of each. It fails
// if no store took it.
func change(out io.Writer, ca authorityCert, stores []store, remove bool, run runner) error {
	act, done, same := store.add, "trusted by", "already in"
	if remove {
		act, done, same = store.remove, "removed from", "not in"
	}
	good := 0
	for _, s := range stores {
		changed, err := act(s, ca, run)
		switch {
		case err != nil:
			fmt.Fprintf(out, "  %-12s %s: %v\n", "not changed", s, err)
			continue
		case changed:
			fmt.Fprintf(out, "  %-12s %s\n", done, s)
		default:
			fmt.Fprintf(out, "  %-12s %s\n", same, s)
		}
		good++
	}
	if good == 0 {
		return errors.New("no store was changed: install the package ca-certificates, or give the output of 'cupola trust --print' to your system's store yourself")
	}
	if !remove {
		fmt.Fprintln(out, "Restart browsers and programs that run. Java, Node.js and Python's requests have their own stores: see docs/tls.md.")
	}
	return nil
}
