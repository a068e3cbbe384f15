package server

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cupola/runtime/durable"
	"cupola/store"
	"cupola/store/cf"
)

// passwordFile is where the admin's password is kept for `cupola credentials`.
func passwordFile(dataDir string) string { return filepath.Join(dataDir, "db", "admin-password") }

// AdminPassword reads the admin's password of a data directory.
func AdminPassword(dataDir string) (string, error) {
	b, err := os.ReadFile(passwordFile(dataDir))
	return strings.TrimSpace(string(b)), err
}

// adminPassword is the configured password, else the kept one, else a new one.
// It is kept, so that `cupola credentials` can tell it.
func (d *daemon) adminPassword() (string, error) {
	password := d.AdminPassword
	if password == "" {
		kept, err := AdminPassword(d.DataDir)
		if err == nil && kept != "" {
			return kept, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		password = strings.ToLower(rand.Text()[:20])
	}
	return password, durable.Ensure(passwordFile(d.DataDir), []byte(password+"\n"), 0o600)
}

// firstPlace makes the org and space that a first `cf push` goes to.
func firstPlace(tx *store.Tx) error {
	if n, err := store.Orgs.Count(tx, store.Query{}); err != nil || n > 0 {
		return err
	}
	org := &cf.Org{Name: "cupola"}
	if q, err := store.OrgQuotas.First(tx, store.Query{}); err == nil {
		org.QuotaGUID = q.GUID
	}
	if err := store.Orgs.Insert(tx, org); err != nil {
		return err
	}
	return store.Spaces.Insert(tx, &cf.Space{Name: "dev", OrgGUID: org.GUID, AllowSSH: true})
}

// sharedDomain makes the domain of apps, where there is none of its name.
func sharedDomain(tx *store.Tx, name string, internal bool) error {
	n, err := store.Domains.Count(tx, store.Query{Where: map[string][]string{"names": {name}}})
	if err != nil || n > 0 {
		return err
	}
	return store.Domains.Insert(tx, &cf.Domain{Name: name, Internal: internal})
}
