package artifact

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"cupola/runtime/egress"
)

// Fetch brings an archive onto this machine. One whose cache key is known is
// moved only if it has changed, of which a checksum that it has is proof enough.
// The caller releases the File.
func (s *Store) Fetch(ctx context.Context, from Source) (File, error) {
	if err := from.check(); err != nil {
		return File{}, err
	}
	if from.CacheKey == "" {
		name, k, err := s.get(ctx, from, kept{})
		return File{Path: name, SHA256: k.SHA256, Size: k.Size, temporary: true}, err
	}
	wait, cancel := context.WithTimeout(ctx, moveTime)
	unlock, err := s.lock(wait, from.CacheKey)
	cancel()
	if err != nil {
		return File{}, fmt.Errorf("wait for a download of the same archive: %w", err)
	}
	defer unlock()
	had := s.find(from.CacheKey)
	if from.Value != "" && had.Sums[from.Algorithm] == strings.ToLower(from.Value) {
		return s.use(from.CacheKey, had, true)
	}
	if from.Value != "" {
		had = kept{} // it is not what is wanted, whatever the server says of it
	}
	name, k, err := s.get(ctx, from, had)
	switch {
	case errors.Is(err, errUnchanged):
		return s.use(from.CacheKey, had, true)
	case err != nil:
		return File{}, err
	}
	if err := s.store(from.CacheKey, name, k); err != nil {
		return File{}, fmt.Errorf("keep an archive: %w", err)
	}
	return s.use(from.CacheKey, k, false)
}

func (from Source) check() error {
	u, err := url.Parse(from.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("source is not an http or https URL")
	}
	if _, ok := sums()[from.Algorithm]; !ok && (from.Algorithm != "" || from.Value != "") {
		return fmt.Errorf("checksum algorithm %q is none of md5, sha1, sha256 and sha512", from.Algorithm)
	}
	return nil
}

// errUnchanged says that the server has no other file than the one that is kept.
var errUnchanged = errors.New("archive has not changed")

// permanent is an error that a retry cannot fix.
type permanent struct{ error }

// get fetches a file, unless it is the one that we had. It tries again where
// the network or the server was at fault.
func (s *Store) get(ctx context.Context, from Source, had kept) (name string, k kept, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return "", kept{}, err
	}
	defer done()
	err = retry(ctx, func() error {
		name, k, err = s.getOnce(ctx, from, had)
		return err
	})
	return name, k, err
}

// begin waits for the turn to move a file, and returns the time for it.
func (s *Store) begin(ctx context.Context) (timed context.Context, done func(), err error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	timed, cancel := context.WithTimeout(ctx, moveTime)
	return timed, func() { cancel(); <-s.slots }, nil
}

// retry does f until it succeeds, or fails for good.
func retry(ctx context.Context, f func() error) error {
	var err error
	for n := range attempts {
		if err = f(); err == nil || errors.Is(err, errUnchanged) {
			return err
		}
		if p, ok := errors.AsType[permanent](err); ok {
			return p.error
		}
		if errors.Is(err, egress.ErrAddress) {
			return err
		}
		select {
		case <-time.After(time.Duration(n) * 500 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
	return err
}

func (s *Store) getOnce(ctx context.Context, from Source, had kept) (string, kept, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.URL, nil)
	if err != nil {
		return "", kept{}, permanent{withoutURL(err)}
	}
	if had.ETag != "" {
		req.Header.Set("If-None-Match", had.ETag)
	}
	if had.LastModified != "" {
		req.Header.Set("If-Modified-Since", had.LastModified)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return "", kept{}, withoutURL(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && had.Size > 0:
		return "", kept{}, errUnchanged
	case res.StatusCode >= 500:
		return "", kept{}, fmt.Errorf("download: the server answers %s", res.Status)
	case res.StatusCode != http.StatusOK:
		return "", kept{}, permanent{fmt.Errorf("download: the server answers %s", res.Status)}
	}
	k := kept{ETag: res.Header.Get("ETag"), LastModified: res.Header.Get("Last-Modified")}
	name, err := s.receive(res, from, &k)
	return name, k, err
}

// receive writes an answer into its own file.
func (s *Store) receive(res *http.Response, from Source, k *kept) (name string, err error) {
	f, err := os.OpenFile(s.temp(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", permanent{err}
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}()
	all := map[string]hash.Hash{"sha256": sha256.New()}
	if from.Value != "" {
		all[from.Algorithm] = sums()[from.Algorithm]()
	}
	to := []io.Writer{f}
	for _, h := range all {
		to = append(to, h)
	}
	k.Size, err = io.Copy(io.MultiWriter(to...), io.LimitReader(res.Body, s.max+1))
	if err != nil {
		return "", fmt.Errorf("download: %w", withoutURL(err))
	}
	if k.Size > s.max {
		return "", permanent{fmt.Errorf("download: more than %d bytes", s.max)}
	}
	k.Sums = map[string]string{}
	for name, h := range all {
		k.Sums[name] = hex.EncodeToString(h.Sum(nil))
	}
	k.SHA256 = k.Sums["sha256"]
	if got := k.Sums[from.Algorithm]; from.Value != "" && got != strings.ToLower(from.Value) {
		return "", permanent{fmt.Errorf("download: the %s checksum is %s, not %s", from.Algorithm, got, from.Value)}
	}
	return f.Name(), nil
}

// sums returns the checksum algorithms that Diego supports. Two of them are
// weak against malice; the choice is the client's.
func sums() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}
}

// withoutURL leaves out a URL, which may be signed.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
