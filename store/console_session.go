package store

import (
	"database/sql"
	"errors"
	"time"
)

// ConsoleSessions are the sessions of the web console.
var ConsoleSessions consoleSessions

type consoleSessions struct{}

// ConsoleSession is a browser that a user is logged in with.
type ConsoleSession struct {
	Key       string // the hash of the session's secret
	UserGUID  string
	Signature string // of the user's password at the login
	CreatedAt time.Time
	SeenAt    time.Time // of the last request, to some minutes
}

// maxConsoleSessions is how many sessions a user has: the one that was used least
// lately ends for a further one.
const maxConsoleSessions = 32

// Add adds a session, and removes the user's oldest ones beyond the limit and
// everybody's that were last seen before a time.
func (consoleSessions) Add(tx *Tx, s ConsoleSession, forget time.Time) error {
	if _, err := tx.exec("DELETE FROM console_sessions WHERE seen_at < ?", forget.UnixMicro()); err != nil {
		return err
	}
	_, err := tx.exec("DELETE FROM console_sessions WHERE id IN (SELECT id FROM console_sessions WHERE user_guid = ? ORDER BY seen_at DESC LIMIT -1 OFFSET ?)",
		s.UserGUID, maxConsoleSessions-1)
	if err != nil {
		return err
	}
	_, err = tx.exec("INSERT INTO console_sessions (key, user_guid, signature, created_at, seen_at) VALUES (?, ?, ?, ?, ?)",
		s.Key, s.UserGUID, s.Signature, s.CreatedAt.UnixMicro(), s.SeenAt.UnixMicro())
	return err
}

// Get returns the session of a key, if there is one.
func (consoleSessions) Get(tx *Tx, key string) (s ConsoleSession, ok bool, err error) {
	s.Key = key
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT user_guid, signature, created_at, seen_at FROM console_sessions WHERE key = ?", key).
		Scan(&s.UserGUID, &s.Signature, timeColumn{&s.CreatedAt}, timeColumn{&s.SeenAt})
	if errors.Is(err, sql.ErrNoRows) {
		return s, false, nil
	}
	return s, err == nil, err
}

// Touch notes that a session is used.
func (consoleSessions) Touch(tx *Tx, key string) error {
	_, err := tx.exec("UPDATE console_sessions SET seen_at = ? WHERE key = ?", tx.Now.UnixMicro(), key)
	return err
}

// Remove ends a session, if there is one.
func (consoleSessions) Remove(tx *Tx, key string) error {
	_, err := tx.exec("DELETE FROM console_sessions WHERE key = ?", key)
	return err
}
