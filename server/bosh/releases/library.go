package releases

import (
	"context"
	"io"

	"cupola/server/bosh/tarball"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// Library takes releases in, for the API.
type Library struct {
	Blobs *blob.Store
	// Fetch reads a release from a URL.
	Fetch func(ctx context.Context, url string, want tarball.Want) (*cf.BOSHRelease, error)
}

// Receive reads a release's tarball, or if that is nil the one at a URL. It must have
// the digest, name and version where these are given. What is wrong with it is an
// error for the client.
func (l Library) Receive(ctx context.Context, from io.Reader, url, digest, name, version string) (r *cf.BOSHRelease, err error) {
	want := tarball.Want{Digest: digest, Name: name, Version: version}
	if from == nil {
		r, err = l.Fetch(ctx, url, want)
	} else {
		r, err = tarball.Read(ctx, from, want, l.Blobs)
	}
	if tarball.IsRefusal(err) {
		err = cf.Unprocessable("%s", err)
	}
	return r, err
}

// Keep is Keep.
func (Library) Keep(tx *store.Tx, r *cf.BOSHRelease, fix bool) (*cf.BOSHRelease, bool, error) {
	return Keep(tx, r, fix)
}

// Find is Find.
func (Library) Find(tx *store.Tx, name, version string) (*cf.BOSHRelease, error) {
	return Find(tx, name, version)
}

// Delete is Delete.
func (Library) Delete(tx *store.Tx, r *cf.BOSHRelease) error { return Delete(tx, r) }
