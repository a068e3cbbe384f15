package store

import "time"

// RevokedTokens are the tokens that are void before their end.
var RevokedTokens revokedTokens

type revokedTokens struct{}

// Add keeps that the token with the ID is void; after endsAt it is by
// itself, and forgotten.
func (revokedTokens) Add(tx *Tx, jti string, endsAt time.Time) error {
	if _, err := tx.exec("DELETE FROM revoked_tokens WHERE ends_at < ?", tx.Now.UnixMicro()); err != nil {
		return err
	}
	_, err := tx.exec("INSERT INTO revoked_tokens (jti, ends_at) VALUES (?, ?) ON CONFLICT (jti) DO NOTHING", jti, endsAt.UnixMicro())
	return err
}

// Has reports whether the token with the ID was revoked.
func (revokedTokens) Has(tx *Tx, jti string) (revoked bool, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT EXISTS (SELECT 1 FROM revoked_tokens WHERE jti = ?)", jti).Scan(&revoked)
	return revoked, err
}
