package tarball

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"cupola/store/blob"
	"cupola/store/cf"
)

// fetchTime bounds the download of a release.
const fetchTime = 2 * time.Hour

// Fetcher downloads releases.
type Fetcher struct {
	Client *http.Client // goes only where users may lead the daemon
	Blobs  *blob.Store
}

// Fetch is Read of what is at an http or https URL.
func (f Fetcher) Fetch(ctx context.Context, from string, want Want) (*cf.BOSHRelease, error) {
	at, err := url.Parse(from)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, refuse("invalid URL of a release %.200q: give an http or https URL", from)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, refusal{err}
	}
	res, err := f.Client.Do(req)
	if err != nil {
		return nil, refusal{fmt.Errorf("download the release: %w", err)}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, refuse("download the release from %s: %s", at.Redacted(), res.Status)
	}
	r, err := Read(ctx, res.Body, want, f.Blobs)
	if err != nil && !IsRefusal(err) && ctx.Err() != nil {
		err = refuse("download the release from %s: %w", at.Redacted(), context.Cause(ctx))
	}
	return r, err
}
