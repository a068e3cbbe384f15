package server

import (
	"context"
	"encoding/json"

	"cupola/server/uaa"
)

// TokenKeys lists the keys that verify the tokens of the daemon of a data
// directory; the first one signs.
func TokenKeys(ctx context.Context, dataDir string) (all []uaa.Key, err error) {
	err = newControl(dataDir).get(ctx, "/token-keys", &all)
	return all, err
}

// RotateTokenKey has that daemon sign with a new key. With forget, tokens that
// others signed are void at once.
func RotateTokenKey(ctx context.Context, dataDir string, forget bool) (next uaa.Key, err error) {
	path := "/token-keys"
	if forget {
		path += "?forget"
	}
	res, err := newControl(dataDir).send(ctx, "POST", path, nil)
	if err != nil {
		return next, err
	}
	defer res.Body.Close()
	err = json.NewDecoder(res.Body).Decode(&next)
	return next, err
}
