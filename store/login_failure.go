package store

import (
	"encoding/hex"
	"strings"
	"time"
)

// LoginFailures are the logins that failed, by the names that were tried.
var LoginFailures loginFailures

type loginFailures struct{}

// maxLoginFailures is how many failures are kept: who tries many names must not
// fill the disk.
const maxLoginFailures = 10000

// loginName is what stands for a name that was tried; upper case is lower.
func loginName(tx *Tx, name string) string {
	return hex.EncodeToString(sum(tx.seal.mac, []byte("login "+strings.ToLower(name))))
}

// Count is how often logins with the name failed since a time, and when
// they did last.
func (loginFailures) Count(tx *Tx, name string, since time.Time) (n int, last time.Time, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT count(*), coalesce(max(failed_at), 0) FROM login_failures WHERE name = ? AND failed_at > ?",
		loginName(tx, name), since.UnixMicro()).Scan(&n, timeColumn{&last})
	return n, last, err
}

// Add counts a login that failed at a time, and forgets those
// before another.
func (loginFailures) Add(tx *Tx, name string, at, forget time.Time) error {
	_, err := tx.exec("INSERT INTO login_failures (name, failed_at) VALUES (?, ?)", loginName(tx, name), at.UnixMicro())
	if err != nil {
		return err
	}
	_, err = tx.exec("DELETE FROM login_failures WHERE failed_at < ? OR id <= (SELECT max(id) FROM login_failures) - ?",
		forget.UnixMicro(), maxLoginFailures)
	return err
}

// Forget forgets the failures of a name.
func (loginFailures) Forget(tx *Tx, name string) error {
	_, err := tx.exec("DELETE FROM login_failures WHERE name = ?", loginName(tx, name))
	return err
}
