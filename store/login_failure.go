package store

import (
	"encoding/hex"
	"strings"
	"time"
)

// maxLoginFailures is how many failures are kept: who tries many names must not
// fill the disk.
const maxLoginFailures = 10000

// loginName is what stands for a name that was tried; upper case is lower.
func (tx *Tx) loginName(name string) string {
	return hex.EncodeToString(sum(tx.seal.mac, []byte("login "+strings.ToLower(name))))
}

// LoginFailures is how often logins with the name failed since a time, and when
// they did last.
func (tx *Tx) LoginFailures(name string, since time.Time) (n int, last time.Time, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT count(*), coalesce(max(failed_at), 0) FROM login_failures WHERE name = ? AND failed_at > ?",
		tx.loginName(name), since.UnixMicro()).Scan(&n, timeColumn{&last})
	return n, last, err
}

// AddLoginFailure counts a login that failed at a time, and forgets those
// before another.
func (tx *Tx) AddLoginFailure(name string, at, forget time.Time) error {
	_, err := tx.exec("INSERT INTO login_failures (name, failed_at) VALUES (?, ?)", tx.loginName(name), at.UnixMicro())
	if err != nil {
		return err
	}
	_, err = tx.exec("DELETE FROM login_failures WHERE failed_at < ? OR id <= (SELECT max(id) FROM login_failures) - ?",
		forget.UnixMicro(), maxLoginFailures)
	return err
}

// ForgetLoginFailures forgets the failures of a name.
func (tx *Tx) ForgetLoginFailures(name string) error {
	_, err := tx.exec("DELETE FROM login_failures WHERE name = ?", tx.loginName(name))
	return err
}
